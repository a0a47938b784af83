package localstate

import (
	"context"
	"maps"
	"sync"
)

// Memory keeps records as long as the process lives. It encodes them like Bolt, so that nothing is shared.
type Memory struct {
	mu      sync.Mutex // guards what follows
	format  *format
	entries map[string][]byte
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{format: newFormat(), entries: map[string][]byte{}} }

// Load returns everything.
func (m *Memory) Load() ([]Record, error) {
	m.mu.Lock()
	entries := maps.Clone(m.entries)
	m.mu.Unlock()
	records, _, err := m.format.assemble(entries)
	return records, err
}

// Commit makes the changes.
func (m *Memory) Commit(_ context.Context, changes ...Change) error { return m.put(changes) }

// Queue makes the changes.
func (m *Memory) Queue(changes ...Change) { _ = m.put(changes) }

// Settle returns at once: there is nothing to wait for.
func (m *Memory) Settle(context.Context, string) error { return nil }

// put makes the changes at once. After an error those before it are made, and those behind it are not.
func (m *Memory) put(changes []Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range changes {
		data, err := m.format.encode(c)
		if err != nil {
			return err
		}
		if data == nil {
			delete(m.entries, c.key)
		} else {
			m.entries[c.key] = data
		}
	}
	return nil
}

// Close does nothing: the store can be given to another agent.
func (m *Memory) Close() error { return nil }

// None remembers nothing: dev mode, where tasks end with the agent.
type None struct{}

// Load returns nothing.
func (None) Load() ([]Record, error) { return nil, nil }

// Commit does nothing.
func (None) Commit(context.Context, ...Change) error { return nil }

// Queue does nothing.
func (None) Queue(...Change) {}

// Settle returns at once.
func (None) Settle(context.Context, string) error { return nil }

// Close does nothing.
func (None) Close() error { return nil }
