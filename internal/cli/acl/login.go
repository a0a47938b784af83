package acl

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/cli/api"
	"github.com/drover-project/drover/internal/cli/term"
)

// LoginCommand is "drover login".
func LoginCommand(app *term.App) *cobra.Command {
	o := &term.Output{}
	var name, listen, token string
	run := func(ctx context.Context, c *api.Client, _ []string) error {
		m, err := chosen(ctx, c, name, token != "")
		if err != nil {
			return err
		}
		switch {
		case m.Type == acl.MethodOIDC && token != "":
			return drover.Errorf(drover.Invalid, "-login-token is for methods of type JWT, and %q is of type %s", m.Name, m.Type)
		case m.Type == acl.MethodOIDC:
			return loginByBrowser(ctx, app, c, o, m.Name, listen)
		case token == "":
			return drover.Errorf(drover.Invalid, "method %q needs -login-token: - for the standard input, or @FILE", m.Name)
		}
		text, err := value(ctx, app, token)
		if err != nil {
			return err
		}
		return put(ctx, app, c, o, "/v1/acl/login", acl.LoginRequest{
			AuthMethodName: m.Name, LoginToken: acl.Secret(strings.TrimSpace(string(text))),
		}, showToken)
	}
	c := term.NomadCommand(app, "login", "Get a token for who an identity provider says you are", 0, 0, run)
	term.Describe(c, `Logs in with an auth method and prints the token that it gives. With a method of type OIDC it prints an address:
open it in a browser of this machine, where the provider sends you back to this command. With one of type JWT it shows a token of the
provider, such as that of a CI job.`, `drover login
export DROVER_TOKEN=$(drover login -method ci -login-token @/run/token -t '{{.SecretID}}')`)
	c.Flags().StringVar(&name, "method", "", "the auth method; default: the default one")
	c.Flags().StringVar(&listen, "oidc-callback-addr", "localhost:4649",
		"where the provider sends the browser back to: host and port of this machine")
	c.Flags().StringVar(&token, "login-token", "",
		"the provider's token (JWT), - for the standard input, or @FILE; arguments can be seen by others")
	o.Bind(c.Flags())
	return c
}

// chosen is the method of the name, or the default one: of type JWT for who has a token, else of type OIDC before JWT. Errors: NotFound.
func chosen(ctx context.Context, c *api.Client, name string, hasToken bool) (*acl.AuthMethodStub, error) {
	var list []*acl.AuthMethodStub
	if _, err := c.Get(ctx, "/v1/acl/auth-methods", nil, &list); err != nil {
		return nil, err
	}
	var found *acl.AuthMethodStub
	for _, m := range list {
		switch {
		case name != "" && m.Name == name:
			return m, nil
		case name == "" && m.Default && (found == nil || (m.Type == acl.MethodJWT) == hasToken):
			found = m
		}
	}
	switch {
	case found != nil:
		return found, nil
	case name != "":
		return nil, drover.Errorf(drover.NotFound, "auth method %q not found: drover acl auth-method list shows them", name)
	}
	return nil, drover.Errorf(drover.Invalid, "there is no default auth method: name one with -method")
}

// browserTime is how long a person may take.
const browserTime = 5 * time.Minute

// loginByBrowser waits for the provider to send a browser here.
func loginByBrowser(ctx context.Context, app *term.App, c *api.Client, o *term.Output, method, listen string) error {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return drover.Errorf(drover.Unavailable, "-oidc-callback-addr: %w", err)
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return drover.Errorf(drover.Invalid, "-oidc-callback-addr: %w", err)
	}
	if port == "0" {
		_, port, _ = net.SplitHostPort(ln.Addr().String()) // a listener's address has both
	}
	redirect, nonce := "http://"+net.JoinHostPort(host, port)+callbackPath, rand.Text()
	var to acl.AuthURL
	request := acl.AuthURLRequest{AuthMethodName: method, RedirectURI: redirect, ClientNonce: nonce}
	if err := c.Put(ctx, "/v1/acl/oidc/auth-url", nil, request, &to); err != nil {
		_ = ln.Close() // nothing came over it
		return err
	}
	fmt.Fprintf(app.Err, "Open this address in a browser of this machine to log in:\n\n  %s\n\n", to.AuthURL)
	ctx, cancel := app.Clock.WithTimeout(ctx, browserTime)
	defer cancel()
	back, err := awaitBrowser(ctx, ln, to.AuthURL)
	if err != nil {
		return err
	}
	return put(ctx, app, c, o, "/v1/acl/oidc/complete-auth", acl.CompleteAuthRequest{
		AuthMethodName: method, ClientNonce: nonce, RedirectURI: redirect, State: back.Get("state"), Code: acl.Secret(back.Get("code")),
		Iss: back.Get("iss"),
	}, showToken)
}

// callbackPath is where a provider sends browsers back to, as with Nomad's command.
const callbackPath = "/oidc/callback"

// awaitBrowser serves the callback until the provider has sent a browser there for the login that authURL began. Errors: Forbidden for
// who was refused there, Canceled.
func awaitBrowser(ctx context.Context, ln net.Listener, authURL string) (url.Values, error) {
	u, err := url.Parse(authURL)
	if err != nil {
		return nil, drover.Errorf(drover.Internal, "the address of the login: %w", err)
	}
	got := make(chan url.Values, 1)
	mux := http.NewServeMux()
	mux.HandleFunc(callbackPath, func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		if err := r.ParseForm(); err != nil || r.Form.Get("state") != u.Query().Get("state") {
			http.Error(w, "This is not the login that drover waits for.", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "Go on in your terminal: you can close this page.\n") // the browser may be gone
		select {
		case got <- r.Form:
		default: // a second one
		}
	})
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(ln) }() // ends with Shutdown
	defer func() {
		down, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = s.Shutdown(down) // what is left of a browser's connections need not hold the command up
		_ = s.Close()
	}()
	select {
	case <-ctx.Done():
		return nil, drover.Errorf(drover.Canceled, "nobody logged in within %s", browserTime)
	case form := <-got:
		if why := form.Get("error"); why != "" {
			why = strings.TrimSpace(why + " " + form.Get("error_description"))
			return nil, drover.Errorf(drover.Forbidden, "the identity provider refused: %s", term.OneLine(why))
		}
		return form, nil
	}
}
