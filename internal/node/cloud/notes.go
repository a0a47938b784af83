package cloud

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/lazyregexp"
)

const (
	mostKey   = 128
	mostValue = 512
	// mostLabels bounds the labels that people put on a machine.
	mostLabels = 64
	unique     = "unique."
)

// labelName is what the name of a label may be to be part of an attribute's.
var labelName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._:/@+=-]*$`)

// secretive are parts of the names of labels that nobody should read who only may list nodes.
var secretive = []string{
	"secret", "password", "passwd", "passphrase", "token", "credential", "private-key", "api-key", "apikey", "access-key", "ssh-key", "sshkey",
	"-script", "user-data", "userdata", "kube-env", "kubeconfig",
}

// notes are the attributes that a cloud tells, under its prefix.
type notes struct {
	prefix     string // "platform.aws."
	id         string // of the machine
	attributes map[string]string
	labels     int
	dropped    map[string]bool
}

func newNotes(prefix string) *notes {
	return &notes{prefix: prefix, attributes: map[string]string{}, dropped: map[string]bool{}}
}

// set notes an attribute of machines. What only one machine has is unique: it does not count for the node's class.
func (n *notes) set(key, value string, alone bool) {
	if value = strings.TrimSpace(value); value == "" {
		return
	}
	name := n.prefix + key
	if alone {
		name = unique + name
	}
	if len(name) > mostKey || !plain(value) {
		n.dropped[key[:min(len(key), mostKey)]] = true
		return
	}
	n.attributes[name] = value
}

// label notes what people call the machine, below the kind: "tag.". One whose name begins with unique. is unique.
func (n *notes) label(kind, name, value string) {
	name, alone := strings.CutPrefix(name, unique)
	switch n.labels++; {
	case n.labels > mostLabels || !labelName().MatchString(name) || secret(name):
		n.dropped[kind+strings.ToValidUTF8(name[:min(len(name), mostKey)], "?")] = true
	default:
		n.set(kind+name, value, alone)
	}
}

// skip notes that what is at a path of the service is left out.
func (n *notes) skip(path string) { n.dropped[path[:min(len(path), mostKey)]] = true }

// identify notes the machine's id. Errors: there is none, or none that can be one.
func (n *notes) identify(key, id string) error {
	if id = strings.TrimSpace(id); id == "" || !plain(id) {
		return errors.New("the answer has no id of the machine")
	}
	n.id = id
	n.set(key, id, true)
	return nil
}

// plain reports whether the text is short, printable and one line.
func plain(text string) bool {
	return len(text) <= mostValue && utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

func secret(name string) bool {
	name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	for _, part := range secretive {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
