# Every example of dsl/language.md stands, word for word, in the test case that is named above it.
awk '
    /^<!-- tests\/.*-->$/ { file = $2; next }
    /^```/ && !inside { inside = 1; text = ""; next }
    /^```/ {
        inside = 0; count++
        all = ""
        while ((getline line < file) > 0) all = all line "\n"
        close(file)
        if (file == "" || !index(all, text)) { print "language.md:" NR ": this example is not in " (file == "" ? "any test case" : file); bad = 1 }
        file = ""; next
    }
    inside { text = text $0 "\n" }
    END { exit bad || count < 20 }
' dsl/language.md
