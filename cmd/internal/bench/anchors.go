package main

import (
	"context"
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
)

// anchor is the process of an anchor: its name, and what it works on.
func anchor(ctx context.Context, args []string) error {
	switch {
	case len(args) == 3 && args[0] == "download":
		return fetchAll(ctx, args[1], args[2], func(body io.Reader) error {
			_, err := io.Copy(io.Discard, body)
			return err
		})
	case len(args) == 4 && args[0] == "encoding":
		return encodeAll(ctx, args[1], args[2], args[3])
	case len(args) == 3 && args[0] == "duckdb":
		return toParquet(ctx, args[1], args[2])
	}
	return fmt.Errorf("there is no anchor %q", args)
}

// fetchAll requests the addresses in the file `pages`, `together` at once, and calls
// each with every answer.
func fetchAll(ctx context.Context, pages, together string, each func(io.Reader) error) error {
	list, err := os.ReadFile(pages)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(together)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(n)
	for address := range strings.Lines(string(list)) {
		group.Go(func() error {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSpace(address), http.NoBody)
			if err != nil {
				return err
			}
			answer, err := client.Do(r)
			if err != nil {
				return err
			}
			defer func() { _ = answer.Body.Close() }() // it was read
			return each(answer.Body)
		})
	}
	return group.Wait()
}

// xmlPage is a page of results as encoding/xml reads it.
type xmlPage struct {
	Results []struct {
		ID    string `xml:"id,attr"`
		Metas []struct {
			ID    string `xml:"id,attr"`
			Value string `xml:",chardata"`
		} `xml:"metas>meta"`
		Items []struct {
			ID     string   `xml:"id,attr"`
			Values []string `xml:"value"`
		} `xml:"items>item"`
	} `xml:"results>result"`
}

// encodeAll reads the pages with encoding/xml and writes their results with
// encoding/csv. The columns are those of the first page. It reads one page after the
// other, because the order of rows is that of pages.
func encodeAll(ctx context.Context, pages, together, name string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	rows := csv.NewWriter(file)
	columns := map[string]int{}
	place := func(id string) int {
		at, ok := columns[id]
		if !ok {
			at = len(columns) + 1
			columns[id] = at
		}
		return at
	}
	decoded, done := make(chan *xmlPage), make(chan error, 1)
	go func() {
		var failed error
		for page := range decoded {
			for _, r := range page.Results {
				row := make([]string, 1+len(r.Metas)+len(r.Items)+len(columns))
				row[0] = r.ID
				for _, m := range r.Metas {
					row[place("m"+m.ID)] = m.Value
				}
				for _, i := range r.Items {
					row[place("i"+i.ID)] = strings.Join(i.Values, "|")
				}
				if err := rows.Write(row[:1+len(columns)]); err != nil {
					failed = err
				}
			}
		}
		rows.Flush()
		if failed == nil {
			failed = rows.Error()
		}
		done <- failed
	}()
	err = fetchAll(ctx, pages, together, func(body io.Reader) error {
		page := &xmlPage{}
		if err := xml.NewDecoder(body).Decode(page); err != nil {
			return err
		}
		decoded <- page
		return nil
	})
	close(decoded)
	if failed := <-done; err == nil {
		err = failed
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}
