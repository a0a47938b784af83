package acl

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// Hashes tell whether two values are the same but for their indexes and secrets: regions compare them before they send a whole list.

// digest adds texts, each with its length, so that no two lists of texts give the same bytes.
type digest struct{ hash.Hash }

func newDigest() digest { return digest{sha256.New()} }

func (d digest) add(texts ...string) {
	var n [8]byte
	for _, s := range texts {
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		_, _ = d.Write(n[:]) // never fails, by the contract of hash.Hash
		_, _ = d.Write([]byte(s))
	}
}

// SetHash sets Hash to that of what the token is and may do.
func (t *Token) SetHash() {
	d := newDigest()
	d.add(t.Name, t.Type)
	if t.Global {
		d.add("global")
	}
	for _, p := range t.Policies {
		d.add("policy", p)
	}
	for _, r := range t.Roles {
		d.add("role", r.ID)
	}
	t.Hash = d.Sum(nil)
}

// SetHash sets Hash to that of what the policy says.
func (p *Policy) SetHash() {
	d := newDigest()
	d.add(p.Name, p.Description, p.Rules)
	if j := p.JobACL; j != nil {
		d.add(j.Namespace, j.JobID, j.Group, j.Task)
	}
	p.Hash = d.Sum(nil)
}

// SetHash sets Hash to that of what the role is.
func (r *Role) SetHash() {
	d := newDigest()
	d.add(r.Name, r.Description)
	for _, p := range r.Policies {
		d.add(p.Name)
	}
	r.Hash = d.Sum(nil)
}
