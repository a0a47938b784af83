package ops

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// apiFlags are the flags of "drover operator api".
type apiFlags struct {
	method, filter  string
	headers         []string
	dryRun, verbose bool
}

// apiCommand is "drover operator api".
func apiCommand(app *term.App) *cobra.Command {
	f := &apiFlags{}
	c := term.NomadCommand(app, "api PATH", "Ask the HTTP API, and print the answer as it is", 1, 1,
		func(ctx context.Context, c *api.Client, args []string) error { return f.run(ctx, app, c, args[0]) })
	term.Describe(c, `
Asks the agent with the address, token, certificates, namespace and region that other commands use. PATH begins with /v1/, or
stands for what comes after it. What is piped into it is sent as the body, by POST unless -X says otherwise.`,
		`drover operator api /v1/jobs
drover operator api -filter 'Status == "running"' jobs
drover operator api -X DELETE /v1/job/web
drover operator api -dryrun 'allocations?prefix=3f'
drover job run -output web.hcl | drover operator api -X PUT jobs`)
	fl := c.Flags()
	fl.StringVarP(&f.method, "method", "X", "", "the method; default: GET, or POST with a body")
	fl.StringArrayVarP(&f.headers, "header", "H", nil, "a header, 'Name: value'; can be repeated")
	fl.StringVar(&f.filter, "filter", "", "an expression that things of the list must match")
	fl.BoolVar(&f.dryRun, "dryrun", false, "print a curl command that does the same, without the token")
	fl.BoolVar(&f.verbose, "verbose", false, "tell of the request and of the answer's headers on stderr")
	return c
}

// run asks and prints. Errors: Invalid; the API's, with the answer's text.
func (f *apiFlags) run(ctx context.Context, app *term.App, c *api.Client, path string) error {
	path, query, err := apiPath(path)
	if err != nil {
		return err
	}
	if f.filter != "" {
		query.Set("filter", f.filter)
	}
	header := http.Header{}
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return drover.Errorf(drover.Invalid, "-H %q: want 'Name: value'", h)
		}
		header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	body, err := f.body(ctx, app)
	if err != nil {
		return err
	}
	method := strings.ToUpper(f.method)
	switch {
	case method == "" && len(body) > 0:
		method = http.MethodPost
	case method == "":
		method = http.MethodGet
	}
	if f.dryRun {
		return f.curl(app, c, method, path, query, header, len(body) > 0)
	}
	if f.verbose {
		fmt.Fprintf(app.Err, "> %s %s\n", method, c.Url(path, query))
		tellHeaders(app.Err, "> ", header)
	}
	res, err := c.Upload(ctx, method, path, query, bytes.NewReader(body), int64(len(body)), header)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if f.verbose {
		fmt.Fprintf(app.Err, "< %s %s\n", res.Proto, res.Status)
		tellHeaders(app.Err, "< ", res.Header)
	}
	_, err = io.Copy(app.Out, res.Body)
	if err != nil && ctx.Err() == nil {
		return drover.Errorf(drover.Unavailable, "reading the agent's answer: %w", err)
	}
	return nil
}

// apiPath takes a path with its query apart. Errors: Invalid for an address: the token must not go elsewhere.
func apiPath(text string) (path string, query url.Values, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", nil, drover.Errorf(drover.Invalid, "the path %q: %w", text, err)
	}
	if u.Scheme != "" || u.Host != "" {
		return "", nil, drover.Errorf(drover.Invalid, "%q is an address: give the path, as %q, and the agent with -address",
			text, u.EscapedPath())
	}
	query, err = url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", nil, drover.Errorf(drover.Invalid, "the query of %q: %w", text, err)
	}
	path = u.EscapedPath()
	if !strings.HasPrefix(path, "/") {
		path = "/v1/" + strings.TrimPrefix(path, "v1/")
	}
	return path, query, nil
}

// body reads what was piped into the command, which is nothing at a terminal. A method without a body reads nothing either.
func (f *apiFlags) body(ctx context.Context, app *term.App) ([]byte, error) {
	switch strings.ToUpper(f.method) {
	case http.MethodGet, http.MethodHead, http.MethodDelete:
		return nil, nil
	}
	if file, ok := app.In.(*os.File); ok {
		// What cannot be looked at is closed.
		if about, err := file.Stat(); err != nil {
			return nil, nil //nolint:nilerr // there is no body then
		} else if about.Mode()&os.ModeCharDevice != 0 {
			return nil, nil // a terminal, or /dev/null
		}
	}
	return app.ReadInput(ctx, "-")
}

// curl prints the command. The token is a variable of the shell's, so that it may be shown to others.
func (f *apiFlags) curl(
	app *term.App, c *api.Client, method, path string, query url.Values, header http.Header, body bool,
) error {
	words := []string{"curl", "-X", method}
	if c.Token != "" {
		words = append(words, "-H", `"X-Nomad-Token: $DROVER_TOKEN"`)
	}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, value := range header[name] {
			words = append(words, "-H", quoted(name+": "+value))
		}
	}
	t := app.Resolved()
	if socket := t.Socket(); socket != "" {
		words = append(words, "--unix-socket", quoted(socket))
	}
	for _, option := range [][2]string{
		{"--cacert", t.CACert}, {"--capath", t.CAPath}, {"--cert", t.ClientCert}, {"--key", t.ClientKey},
	} {
		if option[1] != "" {
			words = append(words, option[0], quoted(option[1]))
		}
	}
	if t.SkipVerify {
		words = append(words, "--insecure")
	}
	if body {
		words = append(words, "--data-binary", "@-")
	}
	_, err := fmt.Fprintln(app.Out, strings.Join(append(words, quoted(c.Url(path, query))), " "))
	return err
}

// quoted makes one word of a shell of a text.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// tellHeaders prints headers, a line each, in the order of their names. Tokens are left out.
func tellHeaders(w io.Writer, mark string, h http.Header) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		value := strings.Join(h[name], ", ")
		if name == "X-Nomad-Token" || name == "Authorization" {
			value = "…"
		}
		fmt.Fprintf(w, "%s%s: %s\n", mark, name, term.OneLine(value))
	}
}
