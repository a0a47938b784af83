package execution

import (
	"encoding/base64"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/drover-project/drover"
)

// Request is a command as clients of the native API ask for it.
type Request struct {
	Spec
	Command string `json:"command,omitempty"` // a line for the runner's shell, instead of argv
	Input   []byte `json:"input,omitempty"`   // all of stdin, given ahead
	// Webhook is posted the Execution, with its receipt, when it ended: up to six times within half a minute, until it
	// answers 2xx. Addresses that are not public are refused unless exec.webhook_allow names them; redirects are not
	// followed. An end while the server was down is told when it is back.
	Webhook string `json:"webhook,omitempty"`
	// Once is set by a server for a request with an Idempotency-Key.
	Once Once `json:"-"`
}

// Once tells repetitions of a request from new ones. The zero value is a request that is always new.
type Once struct {
	ID      string // of the execution, which the key gives
	Key     string // a digest of the key
	Request string // a digest of the request
}

// OnceLabel is the label of a runner that was claimed with a key; servers set it. It is in the journal, the log and the state: the
// claim is found after a restart and by another server, and no key gets two runners of an environment.
const OnceLabel = "drover.idempotency-key"

// Label is the value of OnceLabel; "" without a key.
func (o Once) Label() string {
	if o.Key == "" {
		return ""
	}
	return o.Key + "-" + o.Request
}

// Of reports whether a claim's labels have the key.
func (o Once) Of(labels map[string]string) bool {
	return o.Key != "" && OnceKey(labels) == o.Key
}

// OnceKey is the digest of the key in a claim's labels; "" if it was claimed without one.
func OnceKey(labels map[string]string) string {
	key, _, _ := strings.Cut(labels[OnceLabel], "-")
	return key
}

// ErrOtherRequest says that a key was used for something else.
func ErrOtherRequest() error {
	return drover.Errorf(drover.Conflict, "Idempotency-Key: it was used for another request, with another path or body: "+
		"take a new key for each request")
}

// ErrUnknown says that there is no such execution.
func ErrUnknown(id string) error { return drover.Errorf(drover.NotFound, "execution %q not found", id) }

// RunRequest asks for a runner, files in it, and a command run there, in one request; the runner is released after it.
type RunRequest struct {
	Environment string `json:"environment"`
	Namespace   string `json:"namespace,omitempty"` // of the environment; "" = default
	Request
	Files     []FileChange  `json:"files,omitempty"`
	Wait      time.Duration `json:"wait,omitempty"`      // ns; for a runner when the pool is empty, as in a ClaimRequest
	MaxOutput int64         `json:"maxOutput,omitempty"` // bytes of each stream in the result; default 1 MiB
}

// RunResult answers a RunRequest. Times are counted from its arrival.
type RunResult struct {
	RunnerID  string        `json:"runnerId"`
	Stdout    string        `json:"stdout"`
	Stderr    string        `json:"stderr"`
	Encoding  string        `json:"encoding,omitempty"` // "base64" where a stream is not UTF-8; then both are
	Receipt   Receipt       `json:"receipt"`
	Claimed   time.Duration `json:"claimed"`   // ns
	FirstByte time.Duration `json:"firstByte"` // ns; 0 = there was no output
	Ended     time.Duration `json:"ended"`     // ns
}

// SetOutput fills in Stdout, Stderr and Encoding.
func (r *RunResult) SetOutput(stdout, stderr []byte) {
	r.Stdout, r.Stderr, r.Encoding = string(stdout), string(stderr), ""
	if !utf8.Valid(stdout) || !utf8.Valid(stderr) {
		r.Encoding = "base64"
		r.Stdout, r.Stderr = base64.StdEncoding.EncodeToString(stdout), base64.StdEncoding.EncodeToString(stderr)
	}
}

// Output returns both streams as the program wrote them.
func (r *RunResult) Output() (stdout, stderr []byte, err error) {
	if r.Encoding != "base64" {
		return []byte(r.Stdout), []byte(r.Stderr), nil
	}
	if stdout, err = base64.StdEncoding.DecodeString(r.Stdout); err != nil {
		return nil, nil, drover.Errorf(drover.Internal, "decoding stdout: %w", err)
	}
	if stderr, err = base64.StdEncoding.DecodeString(r.Stderr); err != nil {
		return nil, nil, drover.Errorf(drover.Internal, "decoding stderr: %w", err)
	}
	return stdout, stderr, nil
}
