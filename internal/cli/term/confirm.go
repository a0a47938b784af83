package term

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/drover-project/drover"
)

// Confirm asks a question, and reads a line. Errors: Canceled unless the answer is yes.
func (a *App) Confirm(ctx context.Context, question string) error {
	fmt.Fprintf(a.Err, "%s [y/N] ", question)
	line, err := UnlessInterrupted(ctx, func() (string, error) { return readLine(a.In) })
	if err != nil {
		return err
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return drover.Errorf(drover.Canceled, "stopped")
	}
	return nil
}

// readLine reads to the end of a line, and no further: what follows is another question's answer.
func readLine(r io.Reader) (string, error) {
	var line strings.Builder
	for one := make([]byte, 1); ; {
		n, err := r.Read(one)
		if n > 0 && one[0] != '\n' {
			line.WriteByte(one[0])
		}
		switch {
		case n > 0 && one[0] == '\n', errors.Is(err, io.EOF):
			return line.String(), nil
		case err != nil:
			return "", err
		}
	}
}
