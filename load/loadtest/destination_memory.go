package loadtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/formetl/formetl/load"
)

// Memory is a destination in memory. As in an object store, staged objects have
// no name until they are committed. Destinations from Fresh share their
// objects, as processes share a bucket.
type Memory struct{ place *place }

type place struct {
	mu      sync.Mutex
	objects map[string][]byte
	staged  map[string][]byte
	begun   map[string]load.Leftover // uploads neither committed nor aborted, by id
	leases  map[string]load.Holder
	serial  int
}

var _ load.Destination = (*Memory)(nil)

// NewMemory returns an empty destination in memory.
func NewMemory() *Memory {
	return &Memory{place: &place{
		objects: map[string][]byte{}, staged: map[string][]byte{}, begun: map[string]load.Leftover{}, leases: map[string]load.Holder{},
	}}
}

// Fresh returns another Destination with the same objects.
func (m *Memory) Fresh() *Memory { return &Memory{place: m.place} }

// Names lists the objects that are visible, sorted.
func (m *Memory) Names() []string {
	m.place.mu.Lock()
	defer m.place.mu.Unlock()
	return slices.Sorted(maps.Keys(m.place.objects))
}

// Staged counts the objects that are prepared and neither committed nor aborted.
func (m *Memory) Staged() int {
	m.place.mu.Lock()
	defer m.place.mu.Unlock()
	return len(m.place.staged)
}

type memoryUpload struct {
	place *place
	id    string
	name  string
	data  bytes.Buffer
	ended bool
}

// Stage begins an object.
func (m *Memory) Stage(ctx context.Context, run, name string) (load.Upload, error) {
	if err := errors.Join(load.CheckObjectName(name), load.CheckRun(run), ctx.Err()); err != nil {
		return nil, err
	}
	m.place.mu.Lock()
	defer m.place.mu.Unlock()
	m.place.serial++
	id := "upload-" + strconv.Itoa(m.place.serial)
	m.place.begun[id] = load.Leftover{
		Kind: load.StagedFile, Run: run, Name: name, Path: "memory/" + id, Bytes: -1, Since: time.Now(), Ref: id,
	}
	return &memoryUpload{place: m.place, id: id, name: name}, nil
}

// Write appends to the object.
func (u *memoryUpload) Write(p []byte) (int, error) {
	if u.ended {
		return 0, fmt.Errorf("cannot write to %s: the upload has ended", u.name)
	}
	return u.data.Write(p)
}

// Prepare keeps the object under an id.
func (u *memoryUpload) Prepare(ctx context.Context) (load.Prepared, error) {
	if u.ended {
		return load.Prepared{}, fmt.Errorf("cannot prepare %s: the upload has ended", u.name)
	}
	if err := ctx.Err(); err != nil {
		return load.Prepared{}, err
	}
	u.ended = true
	u.place.mu.Lock()
	defer u.place.mu.Unlock()
	if l, there := u.place.begun[u.id]; there { // otherwise Remove has removed it
		l.Bytes = int64(u.data.Len())
		u.place.begun[u.id] = l
		u.place.staged[u.id] = u.data.Bytes()
	}
	return load.Prepared{Name: u.name, Staged: u.id, Bytes: int64(u.data.Len()), SHA256: digest(u.data.Bytes())}, nil
}

// Abort removes the object. After Prepare it does nothing.
func (u *memoryUpload) Abort() error {
	if !u.ended {
		u.ended = true
		u.place.drop(u.id)
	}
	return nil
}

// Commit makes a prepared object visible.
func (m *Memory) Commit(ctx context.Context, p load.Prepared) error {
	if err := errors.Join(load.CheckObjectName(p.Name), ctx.Err()); err != nil {
		return err
	}
	m.place.mu.Lock()
	defer m.place.mu.Unlock()
	data, staged := m.place.staged[p.Staged]
	final, visible := m.place.objects[p.Name]
	same := visible && int64(len(final)) == p.Bytes && digest(final) == p.SHA256
	switch {
	case staged && (p.Replace || !visible):
		m.place.objects[p.Name] = data
	case same:
	case visible && !p.Replace:
		return fmt.Errorf("cannot commit %s: %w", p.Name, load.ErrConflict)
	default:
		return fmt.Errorf("cannot commit %s: %w", p.Name, load.ErrStagedGone)
	}
	delete(m.place.staged, p.Staged)
	delete(m.place.begun, p.Staged)
	return nil
}

// Abort removes a prepared object.
func (m *Memory) Abort(_ context.Context, p load.Prepared) error {
	m.place.drop(p.Staged)
	return nil
}

// Check tells whether a prepared object is staged or committed.
func (m *Memory) Check(ctx context.Context, p load.Prepared) error {
	if err := errors.Join(load.CheckObjectName(p.Name), ctx.Err()); err != nil {
		return err
	}
	m.place.mu.Lock()
	defer m.place.mu.Unlock()
	data, there := m.place.staged[p.Staged]
	if !there {
		data, there = m.place.objects[p.Name]
	}
	if there && int64(len(data)) == p.Bytes && digest(data) == p.SHA256 {
		return nil
	}
	return fmt.Errorf("%s cannot be committed: %w", p.Name, load.ErrStagedGone)
}

// Get reads an object. Its version is the hash of its content.
func (m *Memory) Get(ctx context.Context, name string) ([]byte, string, error) {
	if err := errors.Join(load.CheckName(name), ctx.Err()); err != nil {
		return nil, "", err
	}
	m.place.mu.Lock()
	defer m.place.mu.Unlock()
	data, ok := m.place.objects[name]
	if !ok {
		return nil, "", fmt.Errorf("cannot read %s: %w", name, load.ErrNotExist)
	}
	return slices.Clone(data), digest(data), nil
}

// Open reads an object.
func (m *Memory) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	data, _, err := m.Get(ctx, name)
	return io.NopCloser(bytes.NewReader(data)), err
}

// Put writes an object if the version is the current one.
func (m *Memory) Put(ctx context.Context, name string, data []byte, version string) error {
	if err := errors.Join(load.CheckName(name), ctx.Err()); err != nil {
		return err
	}
	m.place.mu.Lock()
	defer m.place.mu.Unlock()
	now := load.NoVersion
	if old, ok := m.place.objects[name]; ok {
		now = digest(old)
	}
	if version != load.AnyVersion && version != now {
		return fmt.Errorf("cannot write %s: %w", name, load.ErrConflict)
	}
	m.place.objects[name] = slices.Clone(data)
	return nil
}

// Delete removes an object.
func (m *Memory) Delete(ctx context.Context, name string) error {
	if err := errors.Join(load.CheckName(name), ctx.Err()); err != nil {
		return err
	}
	m.place.mu.Lock()
	defer m.place.mu.Unlock()
	delete(m.place.objects, name)
	return nil
}

// List gives the objects whose names begin with prefix.
func (m *Memory) List(ctx context.Context, prefix string) ([]load.Object, error) {
	if err := errors.Join(load.CheckPrefix(prefix), ctx.Err()); err != nil {
		return nil, err
	}
	m.place.mu.Lock()
	defer m.place.mu.Unlock()
	var objects []load.Object
	for _, name := range slices.Sorted(maps.Keys(m.place.objects)) {
		if strings.HasPrefix(name, prefix) {
			objects = append(objects, load.Object{Name: name, Bytes: int64(len(m.place.objects[name]))})
		}
	}
	return objects, nil
}

type memoryLease struct {
	place *place
	scope string
	once  sync.Once
	lost  chan struct{}
}

// Acquire takes the lease of a scope.
func (m *Memory) Acquire(ctx context.Context, scope string, h load.Holder) (load.Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.place.mu.Lock()
	defer m.place.mu.Unlock()
	for name := range m.place.objects {
		if scope != "" && strings.HasPrefix(name, scope+"/") {
			return nil, &load.CreateError{Op: "create", Path: "memory/" + scope, Err: errors.New("a folder has its name")}
		}
	}
	if holder, held := m.place.leases[scope]; held {
		return nil, &load.HeldError{Path: "memory/" + scope, Holder: holder}
	}
	m.place.leases[scope] = h
	return &memoryLease{place: m.place, scope: scope, lost: make(chan struct{})}, nil
}

// Lost gives a channel that is never closed.
func (l *memoryLease) Lost() <-chan struct{} { return l.lost }

// Release gives the lease back.
func (l *memoryLease) Release(context.Context) error {
	l.once.Do(func() {
		l.place.mu.Lock()
		defer l.place.mu.Unlock()
		delete(l.place.leases, l.scope)
	})
	return nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
