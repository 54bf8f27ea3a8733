// Package zz is reported last.
package zz
