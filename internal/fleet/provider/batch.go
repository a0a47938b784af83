package provider

import (
	"fmt"
	"strconv"
	"strings"
)

// A Batch is several machines that one call makes, with equal user data. Each intent's id says which batch
// it is of, and its number there: whoever knows one of them, after a crash as well, can ask for the same batch again.
type Batch struct {
	ID   string
	Size int
}

// Intent is the id of the batch's k-th intent, from 0.
func (b Batch) Intent(k int) string { return fmt.Sprintf("%s-%dof%d", b.ID, k, b.Size) }

// Intents are the ids of all of them.
func (b Batch) Intents() []string {
	list := make([]string, b.Size)
	for k := range list {
		list[k] = b.Intent(k)
	}
	return list
}

// String is what the tag of a batch's machines says.
func (b Batch) String() string { return b.ID + "/" + strconv.Itoa(b.Size) }

// batchMost bounds what is believed of an id or a tag that somebody else wrote.
const batchMost = 1000

// ParseBatch reads the tag.
func ParseBatch(text string) (b Batch, ok bool) {
	id, size, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(size)
	b = Batch{id, n}
	return b, err == nil && id != "" && n > 1 && n <= batchMost && b.String() == text
}

// BatchOf tells of which batch an intent is, and which of it; false for one that is bought alone.
func BatchOf(intent string) (b Batch, k int, ok bool) {
	at := strings.LastIndexByte(intent, '-')
	if at < 0 {
		return b, 0, false
	}
	index, size, _ := strings.Cut(intent[at+1:], "of")
	k, err := strconv.Atoi(index)
	if err != nil {
		return b, 0, false
	}
	b, ok = ParseBatch(intent[:at] + "/" + size)
	return b, k, ok && k >= 0 && k < b.Size && b.Intent(k) == intent
}
