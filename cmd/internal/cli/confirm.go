package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// confirm asks a yes-or-no question where somebody can answer it. Nobody can
// where standard input is not a terminal, or where logs are JSON: that is
// wrong usage, not a yes. otherwise says what a no means, such as "nothing was
// sent".
func (a *app) confirm(ctx context.Context, question, otherwise string) (bool, error) {
	if err := a.somebodyThere(otherwise); err != nil {
		return false, err
	}
	return a.ask(ctx, question, otherwise)
}

// somebodyThere fails where nobody can answer a question.
func (a *app) somebodyThere(otherwise string) error {
	if !isTerminal(a.stdin) || a.logFormat == formatJSON {
		return &usageError{errors.New("nobody is there to ask: give --yes to do it without asking; " + otherwise)}
	}
	return nil
}

// ask reads the answer. Anything but y or yes is a no.
func (a *app) ask(ctx context.Context, question, otherwise string) (bool, error) {
	fmt.Fprint(a.stderr, question)
	answer := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(a.stdin).ReadString('\n')
		if err != nil {
			line = "" // an unfinished line is no answer
		}
		answer <- line
	}()
	select {
	case <-ctx.Done(): // the reading goroutine ends with the process
		fmt.Fprintln(a.stderr)
		return false, context.Cause(ctx)
	case line := <-answer:
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return true, nil
		}
	}
	fmt.Fprintln(a.stderr, strings.ToUpper(otherwise[:1])+otherwise[1:]+".")
	return false, nil
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) //nolint:gosec // a descriptor is small
}
