// Package faulttest lets helpers die. Two of them, a parent's and its delegate's, play one delegation to its end over the real
// mail root and the real tmux; then again for every step of every durable write, with one of them killed by SIGKILL right there,
// once with a pi that lives on and once with a pi that dies too. Whatever happens, the parent's model is told exactly once: the
// answer, or that there is none.
package faulttest
