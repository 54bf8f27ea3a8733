package jsonapi

import "slices"

// form writes what Get Forms and Get Form say of a form.
func (s *Service) form(w *Writer, f *Form, host string) {
	link := "https://" + host + "/" + s.Account + "/" + f.Directory + "/"
	state := "open"
	if f.Closed {
		state = "closed"
	}
	w.open('{')
	w.member("directory", f.Directory)
	w.member("name", f.Name)
	w.member("description", f.Description)
	w.member("state", state)
	w.key("publish")
	w.open('{')
	w.member("link", link)
	w.member("embed_code", `<iframe src="`+link+`" width="100%"></iframe>`)
	w.close('}')
	results, files := "resultsCount", "filesSize"
	if s.SnakeStats {
		results, files = "results_count", "files_size"
	}
	w.key("stats")
	w.open('{')
	w.numberMember(results, int64(f.Results))
	w.numberMember(files, f.filesSize())
	w.close('}')
	w.close('}')
}

// filesSize is a kilobyte for each result of a form that takes files.
func (f *Form) filesSize() int64 {
	for _, it := range f.Items {
		if it.Type == "file" {
			return int64(f.Results) * 1024
		}
	}
	return 0
}

// Parents are the ids of the composite items that an item belongs to, the
// outermost first: 353 and 353-0 of 353-0-1.
func Parents(id string) []string {
	var found []string
	for i := range len(id) {
		switch {
		case id[i] == '-' && i > 0 && id[i-1] != '-' && i+1 < len(id):
			found = append(found, id[:i])
		case id[i] < '0' || id[i] > '9':
			return nil
		}
	}
	return found
}

// top is the outermost composite item that an item belongs to, "" for none.
func top(id string) string {
	if p := Parents(id); len(p) > 0 {
		return p[0]
	}
	return ""
}

// items writes the items of a form in order: each after its parents.
func (s *Service) items(w *Writer, f *Form, labels map[string]string) {
	listed := make(map[string]bool, len(f.Items))
	for _, it := range f.Items {
		listed[it.ID] = true
	}
	sorted := sortedItems(f, newQuestions(f, s.OwnPositions))
	children := make(map[string][]string)
	for _, it := range sorted {
		chain := append(Parents(it.ID), it.ID)
		for i := 1; i < len(chain); i++ {
			siblings := children[chain[i-1]]
			if !slices.Contains(siblings, chain[i]) {
				children[chain[i-1]] = append(siblings, chain[i])
			}
		}
	}
	w.key("items")
	w.open('[')
	for _, it := range sorted {
		for _, parent := range Parents(it.ID) {
			if !listed[parent] {
				listed[parent] = true
				s.item(w, Item{ID: parent, Position: it.Position, Label: f.Groups[parent]}, children[parent], labels)
			}
		}
		s.item(w, it, children[it.ID], labels)
	}
	w.close(']')
}

func (s *Service) item(w *Writer, it Item, children []string, labels map[string]string) {
	if own, ok := labels[it.ID]; ok {
		it.Label = own
	}
	w.open('{')
	if len(children) > 0 {
		w.key("children")
		w.open('[')
		for _, id := range children {
			w.text(id)
		}
		w.close(']')
	}
	w.member("id", it.ID)
	w.numberMember("position", int64(it.Position))
	w.member("label", it.Label)
	w.close('}')
}
