package v2

import (
	"context"
	"encoding/json"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// labelSet names a set of labels of one form: the custom labels with an id, or "".
type labelSet struct{ form, custom string }

// headings returns the labels of a form's items, which are asked for once.
func (c *Client) headings(ctx context.Context, form, custom string) ([]page.Heading, error) {
	return c.shared.labels.get(ctx, labelSet{form, custom}, func() ([]page.Heading, error) {
		r := transport.Call{Transaction: getItems, Kind: transport.KindOther, Form: form, Path: "items"}
		if r.Parameters.Add("results_labels", custom); custom != "" {
			r.Asked = "custom labels " + custom
		}
		return askFor(ctx, c, r, func(o object) ([]page.Heading, error) {
			if o["items"] == nil {
				return nil, transport.Wrong("it has no member items")
			}
			return headingsOf(listOf(o["items"])), nil
		})
	})
}

// maxLevels bounds the parents of an item. There are two levels (service-v2.md, section 6).
const maxLevels = 4

// formItem is one item of the answer to Get Form Items.
type formItem struct {
	id, label, parent string
	composite         bool // it has children, and no values of its own
}

// headingsOf returns the label of each item that holds values, in their order. The labels
// of an item's parents stand before its own, as v1 has them.
func headingsOf(list []json.RawMessage) []page.Heading {
	items := map[string]*formItem{}
	ids := collect(list, "", items, maxLevels)
	var headings []page.Heading
	for _, id := range ids {
		if i := items[id]; !i.composite {
			headings = append(headings, page.Heading{ID: id, Label: labelOf(i, items), Kind: page.KindItem})
		}
	}
	return headings
}

// collect adds the items of a list, and returns their ids in order. One source has objects
// as children in the place of ids. levels bounds how deep they are read.
func collect(list []json.RawMessage, parent string, items map[string]*formItem, levels int) (ids []string) {
	for _, raw := range list {
		o := objectOf(raw)
		id := o.text("id")
		if id == "" {
			continue
		}
		i, known := items[id]
		if !known {
			i = &formItem{id: id}
			items[id] = i
		}
		if i.label = textOf(o["label"]); parent != "" {
			i.parent = parent
		}
		ids = append(ids, id)
		children := listOf(o["children"])
		i.composite = len(children) > 0
		if levels == 0 {
			continue
		}
		for _, child := range children {
			if name := textOf(child); name != "" && items[name] == nil {
				items[name] = &formItem{id: name, parent: id}
			} else if name != "" {
				items[name].parent = id
			}
		}
		ids = append(ids, collect(children, id, items, levels-1)...)
	}
	return ids
}

// labelOf returns an item's label after those of its parents.
func labelOf(i *formItem, items map[string]*formItem) string {
	label := i.label
	for range maxLevels {
		if i = items[i.parent]; i == nil {
			break
		}
		if label == "" || i.label == "" {
			label = i.label + label
		} else {
			label = i.label + " – " + label
		}
	}
	return label
}

// kept holds what the service was asked for once, by key. Make it with newKept.
type kept[K comparable, V any] struct {
	token chan struct{} // taken by whoever asks or looks whether somebody did
	known map[K]V
}

func newKept[K comparable, V any]() kept[K, V] {
	return kept[K, V]{make(chan struct{}, 1), map[K]V{}}
}

// get returns the value of a key, and asks for it if nobody has. If that fails, the next
// call asks again.
func (k *kept[K, V]) get(ctx context.Context, key K, ask func() (V, error)) (none V, err error) {
	select {
	case k.token <- struct{}{}:
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	defer func() { <-k.token }()
	if value, ok := k.known[key]; ok {
		return value, nil
	}
	value, err := ask()
	if err != nil {
		return none, err
	}
	k.known[key] = value
	return value, nil
}
