package load

import (
	"context"
	"errors"
	"fmt"

	"github.com/formetl/formetl/load/idset"
)

// PartIDs reads the set of the ids of a part that has rows. The error wraps idset.ErrDamaged
// if the set is missing, or if it belongs to another part. exploded tells that rows are the
// elements of a list, of which a result may have any number.
func PartIDs(ctx context.Context, s Store, p Part, exploded bool) (idset.Set, error) {
	if p.IDs == "" {
		return nil, fmt.Errorf("%w: it is missing", idset.ErrDamaged)
	}
	data, _, err := s.Get(ctx, IDsName(p.IDs))
	if errors.Is(err, ErrNotExist) {
		return nil, fmt.Errorf("%w: it is missing", idset.ErrDamaged)
	}
	if err != nil {
		return nil, err
	}
	if idset.Sum(data) != p.IDs {
		return nil, idset.ErrDamaged
	}
	ids, err := idset.Decode(data)
	if err != nil {
		return nil, err
	}
	if n := int64(ids.Len()); n == 0 || n != p.Rows && !exploded || ids.Min() != p.MinID || ids.Max() != p.MaxID {
		return nil, fmt.Errorf("%w: it belongs to another part", idset.ErrDamaged)
	}
	return ids, nil
}
