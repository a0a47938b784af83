package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/config"
)

type agentFlags struct {
	dev, demo bool
	configs   []string
	set       config.Agent
	httpPort  int
	rpcPort   int
	client    bool
	server    bool
	servers   []string
	meta      map[string]string
	class     string
	pool      string
	expect    int
	logJSON   bool
	insecure  bool
	join      string
	joinFile  string
}

func (a *App) agentCommand() *cobra.Command {
	f := &agentFlags{}
	c := &cobra.Command{
		Use:   "agent (-dev | -config FILE|DIR)",
		Short: "Run an agent: control plane, node, or both",
		Long: `Runs an agent in the foreground until SIGINT or SIGTERM.

-dev runs everything in one process and keeps nothing. With -config the agent keeps all it has in data_dir, and tasks
outlive it: a restarted agent finds them again.

Nodes show the server's join token. A server makes one at its first start and keeps it in data_dir/join-token; a node of
the same user on the same machine finds it by itself, others are given it:
  drover agent -client -servers HOST:4647 -data-dir DIR -join-token TOKEN
With TLS between agents (tls { rpc = true }) a certificate is enough.

An agent that listens beyond loopback (-bind, bind_addr) needs api_token and TLS, or -insecure.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.load()
			if err != nil {
				return err
			}
			return a.RunAgent(cmd.Context(), cfg, a.Err, func(addr string) {
				t := targetOf(cfg, addr)
				if f.demo {
					go a.demo(cmd.Context(), t) // ends by itself
					return
				}
				fmt.Fprintf(a.Out, "==> Drover agent is serving on %s\n", t.address)
			})
		},
	}
	flags := c.Flags()
	flags.BoolVar(&f.dev, "dev", false, "everything in one process, nothing kept")
	flags.BoolVar(&f.demo, "demo", false, "with -dev: make an environment and run a program in it")
	flags.StringArrayVar(&f.configs, "config", nil, "a file or folder of configuration (HCL or JSON); can be repeated")
	flags.StringVar(&f.set.DataDir, "data-dir", "", "where to keep everything")
	flags.StringVar(&f.set.BindAddr, "bind", "", "address to listen on (default 127.0.0.1)")
	flags.StringVar(&f.set.LogLevel, "log-level", "", "trace, debug, info, warn, error")
	flags.StringVar(&f.set.Name, "node", "", "the agent's name")
	flags.StringVar(&f.set.Datacenter, "dc", "", "the node's datacenter")
	flags.StringVar(&f.set.Region, "region", "", "the region")
	flags.IntVar(&f.httpPort, "http-port", -1, "port of the HTTP API; 0 picks a free one")
	flags.IntVar(&f.rpcPort, "rpc-port", -1, "port where nodes dial; 0 picks a free one")
	flags.BoolVar(&f.server, "server", false, "run the control plane")
	flags.BoolVar(&f.client, "client", false, "run the node")
	flags.IntVar(&f.expect, "bootstrap-expect", 0, "how many servers the cluster has")
	flags.StringVar(&f.class, "node-class", "", "the node's class")
	flags.StringVar(&f.pool, "node-pool", "", "the node's pool")
	flags.StringToStringVar(&f.meta, "meta", nil, "the node's metadata, key=value; can be repeated")
	flags.BoolVar(&f.logJSON, "log-json", false, "write the log as JSON")
	flags.BoolVar(&f.insecure, "insecure", false, "listen beyond loopback without api_token or TLS (DROVER_INSECURE)")
	flags.StringVar(&f.join, "join-token", "", "what nodes show to the server (DROVER_JOIN_TOKEN, which others don't see among the processes)")
	flags.StringVar(&f.joinFile, "join-token-file", "", "a file that holds it (DROVER_JOIN_TOKEN_FILE)")
	flags.StringSliceVar(&f.servers, "servers", nil, "servers that the node dials, host:port of their rpc port")
	c.AddCommand(a.agentConfigCommand(f))
	return c
}

// over is what the flags say.
func (f *agentFlags) over() *config.Agent {
	over := f.set
	over.Server = &config.Server{BootstrapExpect: f.expect, JoinToken: f.join, JoinTokenFile: f.joinFile}
	over.Client = &config.Client{JoinToken: f.join, JoinTokenFile: f.joinFile, Servers: f.servers, Meta: f.meta, NodeClass: f.class, NodePool: f.pool}
	if f.server {
		over.Server.Enabled = new(true)
	}
	if f.client || len(f.servers) > 0 {
		over.Client.Enabled = new(true)
	}
	if f.logJSON {
		over.LogJSON = new(true)
	}
	if f.insecure {
		over.Insecure = new(true)
	}
	return &over
}

// load puts the configuration together: defaults, -dev, files, environment, flags.
func (f *agentFlags) load() (*config.Agent, error) {
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
	cfg = config.Merge(cfg, f.over())
	if f.httpPort >= 0 {
		cfg.Ports.HTTP = f.httpPort
	}
	if f.rpcPort >= 0 {
		cfg.Ports.RPC = f.rpcPort
	}
	if f.demo && !f.dev {
		return nil, drover.Errorf(drover.Invalid, "-demo goes with -dev")
	}
	return cfg, cfg.Validate()
}
