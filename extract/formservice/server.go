package formservice

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// What a Server has where nothing else is said.
const (
	DefaultAccount = "acme"
	DefaultKey     = "formservice-test-key" // opens nothing but test services
)

// The generations of the interface, for Server.API.
const (
	V1   = "v1"   // XML, below /api/users/
	V2   = "v2"   // JSON, below /api/v2/
	Both = "both" // each below its path
)

// Server answers the six transactions of the specification, and those of API
// v2 from the same forms. The zero value serves the account "acme" with the key
// DefaultKey and one generated form, "form1", of 1,000 results. Fields must be set
// before the first request; it is safe for concurrent use.
type Server struct {
	Account  string   // "": DefaultAccount
	Key      string   // "": DefaultKey
	Accounts []string // further accounts, which copies may go to; nobody can log in to them
	Forms    []*Form  // nil: the sample form; empty: none
	Faults   Faults   // at the start; see SetFaults
	API      string   // V1, V2 or Both; "": V1
	Files    bool     // uploaded files are served, and values of files are links to them
	FilesMax int64    // the most bytes of a file; 0: 64 KiB

	// Zone is the account's zone, by which API v2 tells UTC; nil: UTC.
	Zone *time.Location

	// Before is called before each request is answered, with what is known of
	// it then; it may change forms and faults. nil: nothing is called. It is the
	// place to change results at a moment that a test chooses. Before the sixth
	// request, say, thirty results are deleted by
	//
	//	Before: func(r Request) {
	//		if r.Number == 6 {
	//			for id := int64(1); id <= 30; id++ {
	//				form.Delete(id)
	//			}
	//		}
	//	}
	//
	// Request.Nth counts the requests of the same transaction instead: the k-th
	// page of API v1 is TransactionResults with Nth k. API v2 has no
	// TransactionCount; its counts are pages with limit=1 in Query. Form.Finish
	// moves a result to another day, and Form.Insert adds one there. Requests that
	// are under way at once call Before at once; a Before that waits holds its own
	// request back alone.
	Before func(Request)
	// Decide, where it is set, decides on a request's fault instead of the
	// rates of Faults.
	Decide func(Request) Fault

	start sync.Once
	gzips sync.Pool // *gzip.Writer

	mu     sync.Mutex
	faults *faults
	forms  []*Form
	log    journal

	versions map[string]int // how often a file was changed
}

// prepare takes over the fields, once.
func (s *Server) prepare() {
	s.start.Do(func() {
		s.forms = slices.Clone(s.Forms)
		if s.Forms == nil {
			s.forms = []*Form{Generate(GenerateOptions{Results: 1000})}
		}
		s.take(s.Faults)
		s.versions, s.log.nth = make(map[string]int), make(map[string]int)
	})
}

// take takes faults over. It panics where Faults.Validate gives an error.
func (s *Server) take(f Faults) {
	read, err := f.read()
	if err != nil {
		panic(err)
	}
	s.faults = read
}

// SetFaults changes the faults of the requests to come.
func (s *Server) SetFaults(f Faults) {
	s.prepare()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(f)
}

// Form returns the form of a directory, nil if there is none. Copies are found
// too.
func (s *Server) Form(directory string) *Form {
	s.prepare()
	for _, f := range s.allForms() {
		if f.Directory == directory {
			return f
		}
	}
	return nil
}

// allForms are the forms that there are now.
func (s *Server) allForms() []*Form {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.forms)
}

// SetForms changes the forms that there are, for the requests to come. Those
// that stay keep their results.
func (s *Server) SetForms(forms ...*Form) {
	s.prepare()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forms = slices.Clone(forms)
}

func (s *Server) account() string { return cmp.Or(s.Account, DefaultAccount) }

func (s *Server) key() string { return cmp.Or(s.Key, DefaultKey) }
