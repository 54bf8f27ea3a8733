package page

// Layout remembers the steps in which a page's results were read, which are mostly the same
// in each. So a decoder guesses the next step and compares bytes. Only after a wrong guess
// it parses names and looks up the field.
type Layout struct {
	Steps []Step
	start int32 // guessed first step of a result; -1: none
	prev  int32 // the step read last in this result; -1: none
}

// Step is one meta or item of a result, or something else that comes once in a result.
type Step struct {
	Tag   Span  // the text that led to it last, empty if that cannot be compared
	Place uint8 // where it was, as the decoder names places
	next  int32 // the step that follows it, as far as no guess was right; -1: none
}

// Reset forgets all steps.
func (l *Layout) Reset() { l.Steps, l.start, l.prev = l.Steps[:0], -1, -1 }

// Add adds a step, which has no tag yet.
func (l *Layout) Add() { l.Steps = append(l.Steps, Step{next: -1}) }

// Result begins the next result.
func (l *Layout) Result() { l.prev = -1 }

// Follow records that a step came next.
func (l *Layout) Follow(step int32) {
	if l.prev < 0 {
		l.start = step
	} else {
		l.Steps[l.prev].next = step
	}
	l.prev = step
}

// Guess returns the step at a place whose tag comes next in text, and the tag's length. The
// step is -1 if none was guessed right. It tries the guessed step, and then those after it,
// because a result may lack fields.
func (l *Layout) Guess(text []byte, at int, place uint8) (step int32, length int) {
	guess := l.start
	if l.prev >= 0 {
		guess = l.Steps[l.prev].next
	}
	for range 3 {
		if guess < 0 {
			return -1, 0
		}
		step := &l.Steps[guess]
		n := int(step.Tag.End - step.Tag.Start)
		if step.Place == place && n > 0 && n <= len(text)-at && string(text[at:at+n]) == string(text[step.Tag.Start:step.Tag.End]) {
			l.prev = guess
			return guess, n
		}
		guess = step.next
	}
	return -1, 0
}
