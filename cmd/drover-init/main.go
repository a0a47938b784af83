package main

import (
	"os"

	"github.com/drover-project/drover/internal/node/supervisor/carrier"
	"github.com/drover-project/drover/internal/node/supervisor/handover"
	"github.com/drover-project/drover/internal/node/supervisor/hold"
	"github.com/drover-project/drover/internal/node/supervisor/initd"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == handover.Command {
		os.Exit(handover.Main(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == carrier.Command {
		os.Exit(initd.MainAttached(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == hold.Command {
		os.Exit(hold.Main())
	}
	os.Exit(initd.Main())
}
