package checkpoint

import (
	"errors"
	"fmt"
	"time"
)

// Base is what an output holds when a run begins.
type Base struct {
	Path    string
	Version string // version of its manifest
	RunID   string // of the run that wrote the manifest; "" if there was none
}

// Next is the run that would resume from a checkpoint.
type Next struct {
	At          time.Time
	Fingerprint string // of its definition; "" if that is not known, and then not compared
	Full        bool   // it is asked to replace everything
	Bases       []Base
}

// Unfit says why a run takes nothing over from a checkpoint, nil if it may.
func (i *Inherited) Unfit(next Next) error {
	switch {
	case next.Fingerprint != "" && i.Fingerprint != next.Fingerprint:
		return errors.New("the definition has changed since")
	case next.At.Sub(i.Newest()).Abs() > KeepFor:
		return errors.New("it is too old")
	case next.Full && !i.Full:
		return errors.New("everything is to be read anew")
	}
	for _, base := range next.Bases {
		byThat := base.RunID != "" && base.RunID == i.RunID // that run committed some outputs, not all
		if base.Version != i.Bases[base.Path] && !byThat {
			return fmt.Errorf("%s has changed since", base.Path)
		}
	}
	_, err := DecodeColumns(i.Inferred)
	return err
}
