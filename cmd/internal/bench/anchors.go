package main

import (
	"context"
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
		return fetchAll(ctx, args[1], args[2])
	case len(args) == 3 && args[0] == "duckdb":
		return toParquet(ctx, args[1], args[2])
	}
	return fmt.Errorf("there is no anchor %q", args)
}

// fetchAll requests the addresses in the file `pages`, `together` at once, and throws the
// answers away.
func fetchAll(ctx context.Context, pages, together string) error {
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
			_, err = io.Copy(io.Discard, answer.Body)
			return err
		})
	}
	return group.Wait()
}
