package cluster

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover"
)

// AuditQuery asks for what servers recorded of requests.
type AuditQuery struct {
	Accessor  string    // id of the caller's token or the beginning of it, or the token's name; "" = all
	Operation string    // method; "" = all
	Object    string    // a part of the path or of what it names; "" = all
	Namespace string    // "" = all
	Class     string    // read, secret or change; "" = all
	Stage     string    // OperationReceived or OperationComplete; "" = OperationComplete, each request once
	Allowed   *bool     // whether it was let in; nil = both
	Since     time.Time // zero = from the beginning
	Until     time.Time // not at it; zero = now
	PerPage   int       // records at most; 0 = DefaultAuditPage
	NextToken string    // where the former page ended
}

// The bounds of PerPage.
const (
	DefaultAuditPage = 100
	MaxAuditPage     = 1000
)

// AuditRecord is a decision about a request as the server recorded it that decided.
type AuditRecord struct {
	Time         time.Time
	Server       string // NAME.REGION
	Seq          uint64 // number of the line in that server's record
	Stage        string // OperationReceived: it was let in; OperationComplete: it is answered, or was refused
	Class        string // read, secret or change
	RequestID    string
	AccessorID   string // of the caller's token; "" of who showed none or one that is not known
	TokenName    string
	Operation    string // the method
	Path         string
	Object       string // what the path or the body names
	Namespace    string
	Remote       string // address of the caller
	Forwarded    string // whom a trusted proxy sent it for
	UserAgent    string
	Via          string // the agent that sent it on
	Allowed      bool
	Needs        string  // the right that it takes
	Reason       string  // why it was refused
	Status       int     // of the answer; 0 if it was only let in
	Milliseconds float64 // until the answer began, or the stream ended
}

// AuditServer is a server that was asked for its record.
type AuditServer struct {
	Name    string
	Problem string // why it has nothing to say: it did not answer, or records nothing that can be read back
}

// AuditRecords is a page of what servers recorded, the newest first.
type AuditRecords struct {
	Records   []AuditRecord
	Servers   []AuditServer // all of the region
	NextToken string        // of the page with older ones; "" = there are none
	// Until is set if the page is not full because servers look at a bounded part of their files for it: what is older is the next page's.
	Until time.Time
}

// AuditPart is what one server found: all records that match with a number from From on, the newest first.
type AuditPart struct {
	Server  string
	Records []AuditRecord
	From    uint64    // number of the last line that was looked at; 0 = all were
	Time    time.Time // when that was written
	Problem string
}

// AuditPlaces are where each server goes on, by its name: before the line of that number, or at the end if it is 0. Servers that have
// nothing more are not in it; nil asks all from the newest on.
type AuditPlaces map[string]uint64

// ParseAuditPlaces reads a token. Errors: Invalid.
func ParseAuditPlaces(token string) (p AuditPlaces, err error) {
	if token == "" {
		return nil, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil || p == nil {
		return nil, drover.Errorf(drover.Invalid, "next_token: it is none of this list: leave it out")
	}
	return p, nil
}

// String is the token.
func (p AuditPlaces) String() string {
	if len(p) == 0 {
		return ""
	}
	text, _ := json.Marshal(p) // never fails: texts and numbers
	return base64.RawURLEncoding.EncodeToString(text)
}

// JoinAudit makes a page of at most n records of what servers found. What is older than what some server did not look at yet is left to the
// next page.
func JoinAudit(parts []AuditPart, n int) AuditRecords {
	type placed struct {
		record *AuditRecord
		at     time.Time
	}
	var all []placed
	var cut time.Time
	out := AuditRecords{Records: []AuditRecord{}, Servers: []AuditServer{}}
	for i := range parts {
		p := &parts[i]
		at := p.Time
		for j := range slices.Backward(p.Records) { // a clock may have been set back: the order of a server is that of its lines
			if r := &p.Records[j]; r.Time.After(at) {
				at = r.Time
			}
			all = append(all, placed{&p.Records[j], at})
		}
		if p.From > 0 && p.Time.After(cut) {
			cut = p.Time
		}
		out.Servers = append(out.Servers, AuditServer{Name: p.Server, Problem: p.Problem})
	}
	slices.Reverse(all)
	slices.SortStableFunc(all, func(a, b placed) int { return b.at.Compare(a.at) })
	shown := min(n, len(all))
	for shown > 0 && all[shown-1].at.Before(cut) {
		shown--
	}
	for _, one := range all[:shown] {
		out.Records = append(out.Records, *one.record)
	}
	next := AuditPlaces{}
	for _, p := range parts {
		switch i := slices.IndexFunc(all[shown:], func(r placed) bool { return r.record.Server == p.Server }); {
		case p.Problem != "":
		case i >= 0:
			next[p.Server] = all[shown+i].record.Seq + 1
		case p.From > 1:
			next[p.Server] = p.From
		}
	}
	if out.NextToken = next.String(); out.NextToken != "" && shown < n {
		out.Until = cut
	}
	slices.SortFunc(out.Servers, func(a, b AuditServer) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Matches reports whether a record is asked for, but for its time.
func (q *AuditQuery) Matches(r *AuditRecord) bool {
	return strings.EqualFold(r.Stage, cmp.Or(q.Stage, "OperationComplete")) &&
		(q.Accessor == "" || strings.HasPrefix(r.AccessorID, q.Accessor) || r.TokenName == q.Accessor) &&
		(q.Operation == "" || strings.EqualFold(r.Operation, q.Operation)) &&
		(q.Object == "" || strings.Contains(r.Object, q.Object) || strings.Contains(r.Path, q.Object)) &&
		(q.Namespace == "" || r.Namespace == q.Namespace) && (q.Class == "" || r.Class == q.Class) &&
		(q.Allowed == nil || r.Allowed == *q.Allowed)
}
