package cli

import "strings"

// nearest returns the known word that typed is most likely a slip of: the one it begins, or the one within two edits, or "".
// Leading dashes don't count.
func nearest(typed string, known []string) string {
	bare := strings.TrimLeft(typed, "-")
	best, bestDistance := "", 3
	for _, word := range known {
		candidate := strings.TrimLeft(word, "-")
		distance := editDistance(bare, candidate)
		if len(bare) >= 2 && strings.HasPrefix(candidate, bare) {
			distance = 1
		}
		// Two edits in a word of three letters are another word.
		if distance < bestDistance && distance < max(len(bare), 2) && (distance == 1 || len(bare) > 3) {
			best, bestDistance = word, distance
		}
	}
	return best
}

// editDistance counts the insertions, deletions and replacements of bytes between a and b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
