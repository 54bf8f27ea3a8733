package v2

import (
	"context"
	"encoding/json"

	"github.com/formetl/formetl/extract/page"
	"github.com/formetl/formetl/extract/transport"
)

// labelSet names a set of labels of one form: custom is the id of custom labels, "" for the usual.
type labelSet struct{ form, custom string }

// headings returns the labels of a form's items. The service is asked for each set of labels once.
func (c *Client) headings(ctx context.Context, form, custom string) ([]page.Heading, error) {
	return c.learned.labels.get(ctx, labelSet{form, custom}, func() ([]page.Heading, error) {
		r := transport.Call{Transaction: getItems, Kind: transport.KindOther, Form: form, Path: "items"}
		if r.Parameters.Add("results_labels", custom); custom != "" {
			r.Asked = "custom labels " + custom
		}
		return askForList(ctx, c, r, "items", headingsOf)
	})
}

// maxLevels bounds the parents of an item. There are two levels (service-v2.md, section 6).
const maxLevels = 4

// headingsOf returns the label of each item that holds values, in the order of list. The labels
// of an item's parents stand before its own label, as in API v1.
func headingsOf(list []json.RawMessage) (headings []page.Heading) {
	var ids []string
	labels, parents := map[string]string{}, map[string]string{}
	composite := map[string]bool{} // items with children, which hold no values of their own
	for _, raw := range list {
		o := objectOf(raw)
		id, children := o.text("id"), listOf(o["children"])
		if id == "" {
			continue
		}
		ids = append(ids, id)
		labels[id], composite[id] = page.PlainLabel(textOf(o["label"])), len(children) > 0
		for _, child := range children {
			parents[textOf(child)] = id
		}
	}
	for _, id := range ids {
		if composite[id] {
			continue
		}
		label, at := labels[id], parents[id]
		for level := 0; level < maxLevels && at != ""; level++ {
			if label == "" || labels[at] == "" {
				label = labels[at] + label
			} else {
				label = labels[at] + " – " + label
			}
			at = parents[at]
		}
		headings = append(headings, page.Heading{ID: id, Label: label, Kind: page.KindItem})
	}
	return headings
}

// memo holds values that the service was asked for once, by key. Make a memo with newMemo.
type memo[K comparable, V any] struct {
	token chan struct{} // taken while a value is looked up or asked for
	known map[K]V
}

func newMemo[K comparable, V any]() memo[K, V] {
	return memo[K, V]{make(chan struct{}, 1), map[K]V{}}
}

// get returns the value of a key, and calls ask if the value is not known. If ask fails, the next
// call of get asks again.
func (k *memo[K, V]) get(ctx context.Context, key K, ask func() (V, error)) (none V, err error) {
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
