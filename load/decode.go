package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// errFollows is a JSON text that holds more than one value.
var errFollows = errors.New("something follows its end")

// DecodeStrict reads data as one JSON value into v, a pointer. A key that v has
// no field for is an error, and so is anything but blanks behind the value.
func DecodeStrict(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return decodeOne(dec, v)
}

// decodeOne reads the only value of a JSON text into v.
func decodeOne(dec *json.Decoder, v any) error {
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errFollows
	}
	return nil
}
