# What the comment at the head of each case's file tells, as registry_tales[] of registry.h: awk -f tales.awk FILE...
# A part begins with its name, and goes on in the lines below it that are set in.

function flush_part() {
	if (part != "")
		told[part] = text
	part = ""
}

function flush_case() {
	flush_part()
	if (id != "" && "Method" in told)
		printf "\t{\"%s\",\n\t \"%s\",\n\t \"%s\",\n\t \"%s\"},\n", id, told["Method"], told["Expect"], told["Not shown"]
	id = ""
	delete told["Method"]
	delete told["Expect"]
	delete told["Not shown"]
}

BEGIN {
	print "#include \"registry.h\"\n\nconst ScenarioTale registry_tales[] = {"
}

FNR == 1 {
	flush_case()
	inside = 1
}

!inside { next }

/\*\// {
	flush_part()
	inside = 0
	next
}

FNR == 2 { id = $2 }

{
	sub(/^ \* ?/, "")
	gsub(/\\/, "\\\\&")
	gsub(/"/, "\\\"")
}

/^(Claim|Method|Expect|Not shown) / {
	flush_part()
	part = $1 == "Not" ? "Not shown" : $1
	text = substr($0, length(part) + 1)
	sub(/^ +/, "", text)
	next
}

/^  / {
	line = $0
	sub(/^ +/, "", line)
	text = text " " line
	next
}

{ flush_part() }

END {
	flush_case()
	print "\t{NULL, NULL, NULL, NULL},\n};"
}
