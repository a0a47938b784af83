package config

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/config/clouds"
	"github.com/drover-project/drover/internal/config/form"
	"github.com/drover-project/drover/internal/config/hcl1"
	"github.com/drover-project/drover/internal/config/machines"
)

// Load reads a file, or all *.hcl and *.json files of a folder in the order of their names, into one Agent to be
// merged. Errors: Invalid, with file, line and the key that is unknown or wrong.
func Load(path string) (*Agent, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "configuration: %w", err)
	}
	files := []string{path}
	if info.IsDir() {
		files = nil
		for _, pattern := range []string{"*.hcl", "*.json"} {
			found, err := filepath.Glob(filepath.Join(path, pattern))
			if err != nil {
				return nil, drover.Errorf(drover.Invalid, "configuration: %w", err)
			}
			files = append(files, found...)
		}
		slices.Sort(files)
	}
	out := &Agent{}
	for _, f := range files {
		a, err := loadFile(f)
		if err != nil {
			return nil, err
		}
		out = Merge(out, a)
	}
	return out, nil
}

func loadFile(path string) (*Agent, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, drover.Errorf(drover.Invalid, "configuration: %w", err)
	}
	return Parse(data, path)
}

// Parse reads one file's text: JSON if it begins with a brace, which HCL never does, or its name ends in .json, else HCL.
func Parse(data []byte, name string) (*Agent, error) {
	parse := hcl1.Parse
	if strings.HasSuffix(name, ".json") || bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		parse = hclparse.NewParser().ParseJSON
	}
	file, diags := parse(data, name)
	if diags.HasErrors() {
		return nil, form.Diagnosed(diags)
	}
	a := &Agent{}
	diags = gohcl.DecodeBody(file.Body, machines.Placeholders(), a)
	if a.Fleet != nil {
		diags = append(diags, machines.ReadPools(a.Fleet.Pools)...)
	}
	if diags = append(diags, a.settle()...); diags.HasErrors() {
		return nil, form.Diagnosed(diags)
	}
	return a, a.fillFree()
}

// free is a block with free keys, and the map that it is read into.
type free struct {
	block **Free
	into  *map[string]string
}

// fillFree turns the blocks with free keys into maps.
func (a *Agent) fillFree() error {
	blocks := []free{{&a.HeadersBlock, &a.Headers}}
	if c := a.Client; c != nil {
		blocks = append(blocks, free{&c.MetaBlock, &c.Meta}, free{&c.OptionsBlock, &c.Options},
			free{&c.ChrootBlock, &c.ChrootEnv})
	}
	for _, b := range blocks {
		block := *b.block
		if block == nil {
			continue
		}
		*b.block = nil
		*b.into = map[string]string{}
		for name, attr := range block.Keys {
			v, diags := attr.Expr.Value(nil)
			if diags.HasErrors() {
				return form.Diagnosed(diags)
			}
			text, err := convert.Convert(v, cty.String)
			if err != nil || text.IsNull() {
				return drover.Errorf(drover.Invalid, "configuration: %s: %s must be a text", attr.Range, name)
			}
			(*b.into)[name] = text.AsString()
		}
	}
	if a.Client != nil {
		for _, key := range clouds.Unheeded(a.Client.Options) {
			a.Ignored = append(a.Ignored, "client.options."+key)
		}
	}
	return nil
}

// Environment returns what DROVER_… variables say. Errors: Invalid, naming the variable.
func Environment(lookup func(string) (string, bool)) (*Agent, error) {
	a := &Agent{}
	text := map[string]*string{
		"DROVER_NAME": &a.Name, "DROVER_REGION": &a.Region, "DROVER_DATACENTER": &a.Datacenter,
		"DROVER_DATA_DIR": &a.DataDir, "DROVER_BIND_ADDR": &a.BindAddr, "DROVER_LOG_LEVEL": &a.LogLevel, "DROVER_API_TOKEN": &a.APIToken,
	}
	for name, field := range text {
		if v, ok := lookup(name); ok {
			*field = v
		}
	}
	for name, field := range map[string]*[]string{"DROVER_ALLOWED_HOSTS": &a.AllowedHosts, "DROVER_ALLOWED_ORIGINS": &a.AllowedOrigins} {
		if v, ok := lookup(name); ok {
			*field = strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' })
		}
	}
	if v, ok := lookup("DROVER_INSECURE"); ok {
		on, err := strconv.ParseBool(v)
		if err != nil {
			return nil, drover.Errorf(drover.Invalid, "DROVER_INSECURE: %q is neither true nor false", v)
		}
		a.Insecure = &on
	}
	if v, ok := lookup("DROVER_HTTP_PORT"); ok {
		port, err := strconv.Atoi(v)
		if err != nil {
			return nil, drover.Errorf(drover.Invalid, "DROVER_HTTP_PORT: %q is no port", v)
		}
		a.Ports = &Ports{HTTP: port}
	}
	key, _ := lookup("DROVER_ENCRYPT")
	token, _ := lookup("DROVER_JOIN_TOKEN")
	if file, _ := lookup("DROVER_JOIN_TOKEN_FILE"); token != "" || file != "" || key != "" {
		a.Server, a.Client = &Server{JoinToken: token, JoinTokenFile: file, Encrypt: key}, &Client{JoinToken: token, JoinTokenFile: file}
	}
	if intro, _ := lookup("NOMAD_CLIENT_INTRO_TOKEN"); intro != "" {
		a.Client = cmp.Or(a.Client, &Client{})
		a.Client.IntroToken = intro
	}
	return a, nil
}
