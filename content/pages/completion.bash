# bash completion of posenc; made by: posenc help --bash
_posenc() {
  local current=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD-1]}
  local verb= scheme= flags= fields= words= takes_scheme=0 word
  local schemes=@SCHEMES@
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ -z $verb ]]; then [[ $word == -* ]] || verb=$word
    elif [[ -z $scheme && " $schemes " == *" $word "* ]]; then scheme=$word; fi
  done
@TABLES@
  COMPREPLY=()
  if [[ -n $words ]]; then :
  elif [[ -z $verb ]]; then words=@VERBS@
  elif [[ $current == -* ]]; then words="$fields $flags --help"
  elif [[ $takes_scheme == 1 && -z $scheme && $last != -* ]]; then words=$schemes
  else return; fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _posenc posenc
