// Package some has tests that are left out.
package some
