#compdef posenc
# zsh completion of posenc; made by: posenc help --zsh
_posenc() {
  local current=${words[CURRENT]} last=${words[CURRENT-1]} candidates=
  local verb= scheme= flags= fields= takes_scheme=0 word
  local schemes=@SCHEMES@
  for word in ${words[2,CURRENT-1]}; do
    if [[ -z $verb ]]; then [[ $word == -* ]] || verb=$word
    elif [[ -z $scheme && " $schemes " == *" $word "* ]]; then scheme=$word; fi
  done
  () {
  local words=
@TABLES@
  candidates=$words
  }
  if [[ -n $candidates ]]; then :
  elif [[ -z $verb ]]; then candidates=@VERBS@
  elif [[ $current == -* ]]; then candidates="$fields $flags --help"
  elif [[ $takes_scheme == 1 && -z $scheme && $last != -* ]]; then candidates=$schemes
  else _files; return; fi
  compadd -- ${=candidates}
  [[ $current == -* || -z $verb ]] || _files
}
if [[ $funcstack[1] == _posenc ]]; then _posenc "$@"; else compdef _posenc posenc; fi
