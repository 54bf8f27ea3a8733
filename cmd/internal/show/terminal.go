package show

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"golang.org/x/term"
)

// IsTerminal tells whether a person sits at the other end of a stream.
func IsTerminal(stream any) bool {
	file, ok := stream.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd())) //nolint:gosec // a descriptor is small
}

// Width is how many columns a bar may take: those of a terminal, as far as it is no very
// wide one, else a few.
func Width(stream any) int {
	const few, most = 60, 100
	if file, ok := stream.(interface{ Fd() uintptr }); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 { //nolint:gosec // as above
			return min(width, most)
		}
	}
	return few
}

// Ask puts a yes-or-no question to a person and reads the answer. Anything but
// y or yes is a no, and then a line says what that means: otherwise, such as
// "nothing was sent". The error is the cause of a context that ends first.
func Ask(ctx context.Context, in io.Reader, out io.Writer, question, otherwise string) (bool, error) {
	fmt.Fprint(out, question)
	line, err := ReadLine(ctx, bufio.NewReader(in), out)
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil:
		line = "" // an unfinished line is no answer
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true, nil
	}
	fmt.Fprintln(out, strings.ToUpper(otherwise[:1])+otherwise[1:]+".")
	return false, nil
}

// ReadLine reads what a person types behind a question on out. The error is io.EOF where the
// input ends before the line does, or the cause of a context that ends first.
func ReadLine(ctx context.Context, in *bufio.Reader, out io.Writer) (string, error) {
	type read struct {
		line string
		err  error
	}
	done := make(chan read, 1)
	go func() { // ends with the process if nobody types
		line, err := in.ReadString('\n')
		done <- read{line, err}
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(out)
		return "", context.Cause(ctx)
	case r := <-done:
		return r.line, r.err
	}
}
