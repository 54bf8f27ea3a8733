// Package readback reads what formetl wrote, for the tests that look at it
// from outside: data files of every format, and manifests. It shares no code
// with the encoders but the libraries beneath them, and it is strict: a file
// that is cut, or holds more than it should, is an error.
package readback
