package agent

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
	"github.com/drover-project/drover/internal/config"
	"github.com/drover-project/drover/internal/optional"
)

// flags are what the command line says of an agent's configuration. The zero value of a flag means that it was not
// given, so that files and environment count then; ports use -1 for that.
type flags struct {
	dev, demo bool
	configs   []string
	// Flags that are fields of the configuration are written into it directly.
	set  config.Agent
	said config.Server
	// 0 asks for a free port, so "not given" is -1.
	httpPort int
	rpcPort  int
	client   bool
	server   bool
	servers  []string
	meta     map[string]string
	class    string
	pool     string
	expect   int
	serfPort int
	rejoin   bool
	logJSON  bool
	acl      bool
	insecure bool
	join     string
	joinFile string
	intro    string
}

// RunFunc runs an agent until ctx ends, and returns nil after an orderly end. again reads the configuration again. ready is
// called once, from a goroutine of its own, when the API is served at addr (host:port) and the node, if there is one, can take
// work.
type RunFunc func(
	ctx context.Context, cfg *config.Agent, again func() (*config.Agent, error), logs io.Writer, ready func(addr string),
) error

// Command is "drover agent", with what configures it below.
func Command(app *term.App, run RunFunc) *cobra.Command {
	f := &flags{}
	c := &cobra.Command{
		Use:   "agent (-dev | -config FILE|DIR)",
		Short: "Run an agent: control plane, node, or both",
		Long: `Runs an agent in the foreground until SIGINT or SIGTERM. At SIGHUP it reads its files again and takes up certificates,
log_level and http_api_response_headers.

-dev runs everything in one process and keeps nothing. With -config the agent keeps all it has in data_dir, and tasks
outlive it: a restarted agent finds them again.

Nodes show the server's join token. A server makes one at its first start and keeps it in data_dir/join-token; a node of
the same user on the same machine finds it by itself, others are given it:
  DROVER_JOIN_TOKEN=TOKEN drover agent -client -servers HOST:4647 -data-dir DIR
With TLS between agents by files of their own (tls { rpc = true }) a certificate is enough.

An agent that listens beyond loopback (-bind, bind_addr) needs api_token or access control, and TLS; or -insecure. A server
without a tls block makes its certificates itself; its join token then names its authority, and nodes get theirs with it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.load()
			if err != nil {
				return err
			}
			return run(cmd.Context(), cfg, f.load, app.Err, func(addr string) {
				// The address is printed with its scheme, so that it can be given to -address.
				t := targetOf(cfg, addr)
				if f.demo {
					go demonstrate(cmd.Context(), app, t) // ends by itself
					return
				}
				fmt.Fprintf(app.Out, "==> Drover agent is serving on %[1]s\n==> The page is %[1]s/ui/\n", t.Address)
			})
		},
	}
	f.bind(c.Flags())
	c.AddCommand(configCommand(app, f))
	return c
}

// bind adds the flags, most of them with Nomad's names.
func (f *flags) bind(fl *pflag.FlagSet) {
	fl.BoolVar(&f.dev, "dev", false, "everything in one process, nothing kept")
	fl.BoolVar(&f.demo, "demo", false, "with -dev: make an environment and run a program in it")
	fl.StringArrayVar(&f.configs, "config", nil, "a file or folder of configuration (HCL or JSON); can be repeated")
	fl.StringVar(&f.set.DataDir, "data-dir", "", "where to keep everything")
	fl.StringVar(&f.set.BindAddr, "bind", "", "address to listen on (default 127.0.0.1)")
	fl.StringVar(&f.set.LogLevel, "log-level", "", "trace, debug, info, warn, error")
	fl.StringVar(&f.set.Name, "node", "", "the agent's name")
	fl.StringVar(&f.set.Datacenter, "dc", "", "the node's datacenter")
	fl.StringVar(&f.set.Region, "region", "", "the region")
	fl.IntVar(&f.httpPort, "http-port", -1, "port of the HTTP API; 0 picks a free one")
	fl.IntVar(&f.rpcPort, "rpc-port", -1, "port where nodes dial; 0 picks a free one")
	fl.BoolVar(&f.server, "server", false, "run the control plane")
	fl.BoolVar(&f.client, "client", false, "run the node")
	fl.IntVar(&f.expect, "bootstrap-expect", -1, "how many servers begin the cluster: 1, 3, 5 or 7; 0 waits to be joined")
	fl.StringSliceVar(&f.said.StartJoin, "join", nil, "another server's gossip to join, host or host:port; can be repeated")
	fl.StringSliceVar(&f.said.RetryJoin, "retry-join", nil, "the same as -join")
	fl.StringVar(&f.said.RetryInterval, "retry-interval", "", "time between two tries to join (default 30s)")
	fl.IntVar(&f.said.RetryMax, "retry-max", 0, "tries to join until the agent gives up; 0 is no limit")
	fl.StringVar(&f.said.Encrypt, "encrypt", "", "key of the gossip, base64 (DROVER_ENCRYPT hides it from who lists processes)")
	fl.BoolVar(&f.rejoin, "rejoin", false, "join the former servers again after this one left on purpose")
	fl.IntVar(&f.serfPort, "serf-port", -1, "port of the servers' gossip (default 4648)")
	fl.StringVar(&f.class, "node-class", "", "the node's class")
	fl.StringVar(&f.pool, "node-pool", "", "the node's pool")
	fl.StringToStringVar(&f.meta, "meta", nil, "the node's metadata, key=value; can be repeated")
	fl.BoolVar(&f.logJSON, "log-json", false, "write the log as JSON")
	fl.BoolVar(&f.acl, "acl-enabled", false, "ask callers for a token, and do what its policies allow")
	fl.BoolVar(&f.insecure, "insecure", false, "listen beyond loopback without api_token or TLS (DROVER_INSECURE)")
	fl.StringVar(&f.join, "join-token", "", "what nodes show to the server (DROVER_JOIN_TOKEN, which others don't see among the processes)")
	fl.StringVar(&f.joinFile, "join-token-file", "", "a file that holds it (DROVER_JOIN_TOKEN_FILE)")
	fl.StringVar(&f.intro, "client-intro-token", "", "the token that introduces the node (NOMAD_CLIENT_INTRO_TOKEN, which others don't see)")
	fl.StringSliceVar(&f.servers, "servers", nil, "servers that the node dials, host:port of their rpc port")
}

// fromFlags returns what the flags say as a configuration, in which everything else is unset. A flag can switch
// something on, but never off.
func (f *flags) fromFlags() *config.Agent {
	said := f.set
	server := f.said
	server.JoinToken, server.JoinTokenFile = f.join, f.joinFile
	if f.expect >= 0 {
		server.BootstrapExpect = &f.expect
	}
	if f.rejoin {
		server.RejoinAfterLeave = new(true)
	}
	said.Server = &server
	said.Client = &config.Client{
		JoinToken: f.join, JoinTokenFile: f.joinFile, IntroToken: f.intro, Servers: f.servers, Meta: f.meta, NodeClass: f.class,
		NodePool: f.pool,
	}
	if f.server {
		said.Server.Enabled = new(true)
	}
	// Servers to dial are of use to a node only.
	if f.client || len(f.servers) > 0 {
		said.Client.Enabled = new(true)
	}
	if f.logJSON {
		said.LogJSON = new(true)
	}
	if f.acl {
		said.ACL = &config.ACL{Enabled: new(true)}
	}
	if f.insecure {
		said.Insecure = new(true)
	}
	return &said
}

// load puts the configuration together: defaults, -dev, files, environment, flags; later ones win. Errors: Invalid,
// with the file and line where there is one.
func (f *flags) load() (*config.Agent, error) {
	cfg := config.Default()
	if f.dev || f.demo {
		cfg = config.Merge(cfg, config.DevMode())
	}
	for _, path := range f.configs {
		file, err := config.Load(path)
		if err != nil {
			return nil, err
		}
		cfg = config.Merge(cfg, file)
	}
	if f.dev || f.demo { // both planes, whatever the files say: as Nomad's -dev
		cfg.Server.Enabled, cfg.Client.Enabled = new(true), new(true)
	}
	env, err := config.Environment(os.LookupEnv)
	if err != nil {
		return nil, err
	}
	cfg = config.Merge(cfg, env)
	cfg = config.Merge(cfg, f.fromFlags())
	// 0 is a value for ports, which Merge would take for "not given".
	if f.httpPort >= 0 {
		cfg.Ports.HTTP = f.httpPort
	}
	if f.rpcPort >= 0 {
		cfg.Ports.RPC = f.rpcPort
	}
	if f.serfPort > 0 {
		cfg.Ports.Serf = f.serfPort
	}
	if f.demo && !f.dev {
		return nil, drover.Errorf(drover.Invalid, "-demo goes with -dev")
	}
	return cfg, cfg.Validate()
}

// targetOf returns how the command line of this process reaches the agent that serves at addr.
func targetOf(cfg *config.Agent, addr string) api.Target {
	if cfg.TLS != nil && optional.Value(cfg.TLS.HTTP) {
		return api.Target{Address: "https://" + addr, Token: cfg.APIToken, CACert: cfg.TLS.CAFile}
	}
	return api.Target{Address: "http://" + addr, Token: cfg.APIToken}
}

// LoadConfig reads the configuration of an agent from files and the environment. Errors: Invalid.
func LoadConfig(files []string) (*config.Agent, error) {
	f := &flags{configs: files, httpPort: -1, rpcPort: -1, serfPort: -1, expect: -1}
	return f.load()
}
