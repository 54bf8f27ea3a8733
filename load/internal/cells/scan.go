package cells

// text is a string or bytes, so that functions scan both without a copy.
type text interface{ ~string | ~[]byte }

// quoted holds the bytes that IndexCSV looks for, escaped those of IndexJSON.
var (
	quoted  = [256]bool{',': true, '"': true, '\r': true, '\n': true}
	escaped = func() (t [256]bool) {
		for c := range t {
			t[c] = c < ' ' || c == '"' || c == '\\' || c >= 0x80
		}
		return t
	}()
)

// IndexCSV returns the index of the first comma, quote, CR or LF of s, or -1. RFC 4180
// requires quotes around a field with one of these.
func IndexCSV[T text](s T) int { return index(s, &quoted) }

// IndexJSON returns the index of the first byte of s that may need escaping in JSON, or -1: a
// control character, a quote, a backslash or a byte outside ASCII.
func IndexJSON[T text](s T) int { return index(s, &escaped) }

func index[T text](s T, wanted *[256]bool) int {
	for i := range len(s) {
		if wanted[s[i]] {
			return i
		}
	}
	return -1
}
