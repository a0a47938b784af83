// Command breaching breaks an invariant outside of tests, for a test that looks at what the product does then.
package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/drover-project/drover/internal/invariant"
)

func main() {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	for range 3000 {
		invariant.Breach(invariant.WithinCapacity, "node-7", "%d of %d", 7, 5)
	}
	fmt.Println(invariant.Breaches())
}
