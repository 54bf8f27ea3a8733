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
	answer := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(in).ReadString('\n')
		if err != nil {
			line = "" // an unfinished line is no answer
		}
		answer <- line
	}()
	select {
	case <-ctx.Done(): // the reading goroutine ends with the process
		fmt.Fprintln(out)
		return false, context.Cause(ctx)
	case line := <-answer:
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return true, nil
		}
	}
	fmt.Fprintln(out, strings.ToUpper(otherwise[:1])+otherwise[1:]+".")
	return false, nil
}
