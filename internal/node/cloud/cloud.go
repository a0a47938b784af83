package cloud

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
)

// patience bounds one try to ask a metadata service, all of its requests together.
const patience = 2 * time.Second

// Wait is how long a node that has allocations waits for an answer before it registers. Servers judge constraints by what it registers
// with: without what the cloud told before a restart of the agent they would stop the system jobs that ask for that.
const Wait = 5 * time.Second

// Config says which clouds are asked, and how stubbornly.
type Config struct {
	// Asked reports whether a cloud may be asked, by its name: env_aws, env_gce, env_azure, env_digitalocean, env_openstack.
	Asked func(name string) bool
	// Retry says what follows when a cloud's metadata service does not answer.
	Retry func(name string) Retry
	// Root is where the kernel shows the firmware's words. Default /sys.
	Root string
	// Getenv reads a variable of the agent's environment, which may say where a metadata service is. Default os.Getenv.
	Getenv func(key string) string
	// Kept is the file in which answers stand for the next agent on the machine, which begins with them. "": they are not kept.
	Kept  string
	Clock clock.Clock
	Log   *slog.Logger
}

// Retry is how often a metadata service is asked.
type Retry struct {
	Attempts int           // further tries after the first; -1 is no end
	Interval time.Duration // rest between two
	Exit     bool          // the agent ends if all of them failed
}

// Clouds asks the clouds that this machine seems to be in. Make it with New.
type Clouds struct{ cfg Config }

// Found is what a cloud told about the machine.
type Found struct {
	Attributes map[string]string
	Links      map[string]string // the machine's id by the kind of the cloud
}

// AddTo has the node know it. What the node's maps were is not changed.
func (f Found) AddTo(n *drover.Node) {
	n.Attributes, n.Links = maps.Clone(n.Attributes), maps.Clone(n.Links)
	maps.Copy(n.Attributes, f.Attributes)
	maps.Copy(n.Links, f.Links)
}

// New prepares the asking, and asks nobody.
func New(cfg Config) *Clouds {
	if cfg.Root == "" {
		cfg.Root = "/sys"
	}
	if cfg.Getenv == nil {
		cfg.Getenv = os.Getenv
	}
	return &Clouds{cfg: cfg}
}

// Run tells what they told an earlier agent, asks all of them at once, and calls tell for each that answered with something else, one
// after the other. It returns when each has answered or was asked often enough. Errors: one did not answer without which the agent shall
// not go on.
func (c *Clouds) Run(ctx context.Context, tell func(Found)) error {
	firmware := read(c.cfg.Root)
	var asking sync.WaitGroup
	var mu sync.Mutex
	var failed []error
	told := c.load() // guarded by mu
	for _, k := range kinds() {
		base := k.base
		given := c.cfg.Getenv(k.variable)
		if given != "" {
			base = given
		}
		if !c.cfg.Asked(k.name) || given == "" && !k.here(firmware) {
			continue
		}
		mu.Lock()
		before, kept := told[k.name]
		if kept {
			tell(before)
		}
		mu.Unlock()
		asking.Go(func() { // ends with the last try, or with ctx
			found, err := c.stubbornly(ctx, k, base)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && kept && found.equal(before):
			case err == nil:
				told[k.name] = found
				c.keep(told)
				tell(found)
			case ctx.Err() == nil && c.cfg.Retry(k.name).Exit:
				failed = append(failed, err)
			}
		})
	}
	asking.Wait()
	return errors.Join(failed...)
}

// stubbornly asks one cloud until it answers. Errors: those of the last try.
func (c *Clouds) stubbornly(ctx context.Context, k kind, base string) (Found, error) {
	retry := c.cfg.Retry(k.name)
	for try := 0; ; try++ {
		found, err := c.once(ctx, k, base)
		if err == nil || ctx.Err() != nil {
			return found, err
		}
		err = fmt.Errorf("asking the metadata service for %s: %w", k.name, err)
		if retry.Attempts >= 0 && try >= retry.Attempts {
			c.cfg.Log.Warn("the node is without the attributes of its cloud", "error", err, "tries", try+1)
			return found, err
		}
		if !clock.Sleep(ctx, c.cfg.Clock, retry.Interval) {
			return found, ctx.Err()
		}
	}
}

// once asks one cloud.
func (c *Clouds) once(ctx context.Context, k kind, base string) (Found, error) {
	ctx, cancel := c.cfg.Clock.WithTimeout(ctx, patience)
	defer cancel()
	s := newService(base)
	defer s.client.CloseIdleConnections()
	found := newNotes(k.prefix)
	if err := k.ask(ctx, s, found); err != nil {
		return Found{}, err
	}
	if n := len(found.dropped); n > 0 {
		c.cfg.Log.Info("the cloud tells what cannot be an attribute", "cloud", k.name, "dropped", n,
			"some", slices.Sorted(maps.Keys(found.dropped))[:min(n, 5)])
	}
	return Found{Attributes: found.attributes, Links: map[string]string{k.link: found.id}}, nil
}
