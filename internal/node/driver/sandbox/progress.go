package sandbox

import (
	"fmt"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/node/driver"
	"github.com/drover-project/drover/internal/node/image"
)

// progressEvery is how often people are told of a pull: a task keeps few events.
const progressEvery = 30 * time.Second

// pullTeller turns a pull's progress into task events: that it began, and now and then how far it is. Nothing is told
// of an image that is there.
func pullTeller(c clock.Clock, spec *driver.Spec, ref string) func(image.Progress) {
	doing := "Downloading"
	if strings.HasPrefix(ref, "/") || strings.HasPrefix(ref, ".") {
		doing = "Unpacking"
	}
	begun := false
	var told time.Time
	return func(p image.Progress) {
		now := c.Now()
		switch {
		case !begun:
			begun, told = true, now
			spec.Say(doing + " image " + ref)
		case now.Sub(told) >= progressEvery:
			told = now
			spec.Say(fmt.Sprintf("%s image %s: %d of %d layers, %.1f MB unpacked", doing, ref, p.LayersDone, p.Layers, float64(p.Bytes)/1e6))
		}
	}
}
