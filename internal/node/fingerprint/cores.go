package fingerprint

import "github.com/drover-project/drover/internal/validation"

// Cores says which of the machine's cores can be lent to one task alone. Nil lists are no restriction.
type Cores struct {
	None bool           // the machine cannot keep cores for one task: it has no cpuset
	Of   validation.IDs // those that may be lent
	But  validation.IDs // those that are kept from allocations
}

// Lent are the cores of a machine with so many that can be lent.
func (c Cores) Lent(all int) (out []uint16) {
	for i := range uint32(all) {
		if !c.None && (c.Of == nil || c.Of.Has(i)) && !c.But.Has(i) {
			out = append(out, uint16(i))
		}
	}
	return out
}

// Kept is the part of a compute in MHz, of so many cores together, that is kept from allocations with its cores.
func (c Cores) Kept(all int, compute int64) int64 {
	kept := int64(0)
	for i := range uint32(all) {
		if c.But.Has(i) {
			kept++
		}
	}
	return kept * compute / int64(max(all, 1))
}
