package main

import (
	"os"

	"github.com/drover-project/drover/internal/node/supervisor/guest/hold"
	"github.com/drover-project/drover/internal/node/supervisor/guest/server"
	"github.com/drover-project/drover/internal/node/supervisor/handover"
	"github.com/drover-project/drover/internal/node/supervisor/pipelink"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == handover.Command {
		os.Exit(handover.Main(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == pipelink.Command {
		os.Exit(server.MainAttached(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == hold.Command {
		os.Exit(hold.Main())
	}
	os.Exit(server.Main())
}
