package labels

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/formetl/formetl/schemas"
	"github.com/formetl/formetl/schemas/plain"
)

const rScript = `# Written by formetl schema labels, for R. It makes the data frame results; labels are attr(x, "label").
# Base R cannot tell an empty text from a missing one: both are NA. A line break in a text is "\n". Numbers are
# exact to 15 digits; a column with whole numbers beyond 2^53 is character.
results <- local({
  file <- %s
  zone <- %s
  time <- %s
  columns <- list(
%s)
  types <- vapply(columns, function(column) column$type, "")
  d <- read.csv(file, na.strings = "", check.names = FALSE, fill = FALSE, blank.lines.skip = FALSE, comment.char = "",
    encoding = "UTF-8", colClasses = ifelse(types %%in%% c("numeric", "logical"), types, "character"))
  names <- vapply(columns, function(column) column$name, "")
  if (!identical(trimws(sub("^\uFEFF", "", names(d))), trimws(names))) stop("the file has other columns now: make this script again with formetl schema labels")
  names(d) <- names
  for (i in seq_along(columns)) {
    x <- d[[i]]
    x <- switch(types[i],
      Date = as.Date(x, format = "%%Y-%%m-%%d"),
      POSIXct = as.POSIXct(sub("Z$", "+0000", sub("([+-]\\d\\d):(\\d\\d)$", "\\1\\2", x)), format = time, tz = zone),
      factor = factor(x, levels = union(columns[[i]]$levels, x[!is.na(x)])),
      x)
    if (all(is.na(x)) && !all(is.na(d[[i]]))) stop("the file has other texts in the column ", names[i], " now: make this script again with formetl schema labels")
    attr(x, "label") <- columns[[i]]$label
    d[[i]] <- x
  }
  d
})
`

// rTypes are the classes of R for types of columns.
var rTypes = [...]string{
	schemas.String: "character", schemas.List: "character", schemas.Bool: "logical", schemas.Date: "Date", schemas.Timestamp: "POSIXct",
	schemas.Int64: "numeric", schemas.Float64: "numeric", schemas.Decimal: "numeric",
}

// R returns the script for R, of base R alone.
func R(f *File) string {
	time := "%Y-%m-%dT%H:%M:%OS%z"
	if f.Local {
		time = "%Y-%m-%d %H:%M:%OS"
	}
	columns := make([]string, 0, len(f.Columns))
	for _, c := range f.Columns {
		kind, more := rTypes[c.Type.Kind], ""
		if c.Label != "" {
			more = ", label = " + quoted(c.Label)
		}
		if c.large {
			kind = "character"
		}
		if len(c.Choices) > 0 {
			levels := make([]string, len(c.Choices))
			for i, choice := range c.Choices {
				levels[i] = quoted(choice)
			}
			kind, more = "factor", more+",\n      levels = c("+strings.Join(levels, ",\n        ")+")"
		}
		columns = append(columns, fmt.Sprintf("    list(name = %s, type = %q%s)", quoted(c.Name), kind, more))
	}
	return fmt.Sprintf(rScript, quoted(f.Path), quoted(f.Zone), quoted(time), strings.Join(columns, ",\n"))
}

// quoted returns a text as a string literal of R, which has the escapes of JSON.
func quoted(text string) string {
	var s bytes.Buffer
	e := json.NewEncoder(&s)
	e.SetEscapeHTML(false) // people read the labels
	_ = e.Encode(text)     // a string gives no error
	return string(plain.JSON(bytes.TrimSpace(s.Bytes())))
}
