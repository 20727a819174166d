# Sourced by the scripts of packaging/: archives whose bytes depend only on the contents of the files.
# The caller sets `root`, the project's folder.

# The date of every file in an archive: SOURCE_DATE_EPOCH, or that of the explorer's card deck.
archive_date=${SOURCE_DATE_EPOCH:-1767225600}

# version_of_tree: the version, from the one place that has it.
version_of_tree() { sed -nE 's/^#define POSENC_VERSION "(.*)"/\1/p' "$root/include/posenc/version.h"; }

# check_output SCRIPT ARGUMENT…: the one argument is a folder that can be written to; said before a build of minutes.
check_output() {
  local script=$1
  shift
  if (($# != 1)); then
    echo "$script: expected one argument, the folder to write to" >&2
    return 2
  fi
  if ! mkdir -p "$1" 2>/dev/null || [[ ! -w $1 ]]; then
    echo "$script: cannot write to $1" >&2
    return 1
  fi
  if [[ ! $archive_date =~ ^[0-9]+$ ]]; then
    echo "$script: SOURCE_DATE_EPOCH must be a number of seconds but is $archive_date" >&2
    return 1
  fi
}

# archive FOLDER NAME FILE: writes the contents of FOLDER, below the name NAME, to FILE (.tar.gz or .tgz). The file appears
# only when it is complete.
archive() {
  local folder=$1 name=$2 file=$3
  mkdir -p "$(dirname "$file")"
  if ! tar --create --directory "$folder" --sort=name --format=ustar --mtime="@$archive_date" --owner=0 --group=0 --numeric-owner \
    --mode=u=rwX,go=rX --transform "s,^\\.,$name," . | gzip -9n >"$file.new"; then
    rm -f "$file.new"
    echo "packaging: $file could not be written" >&2
    return 1
  fi
  mv "$file.new" "$file"
}

# pack_npm FOLDER OUT: the npm package of a folder, as npm itself would name it and lay it out.
pack_npm() {
  local file
  file=$2/posenc-$(version_of_tree).tgz
  archive "$1" package "$file" && echo "$file"
}

# pack_site PROGRAM OUT: the site that the program has inside, and the API reference in its folder reference.
pack_site() {
  local name folder package status=0
  package=$(dirname -- "$1")/../python/posenc  # of the same build, if it has one
  [[ -e $package/keywords.py ]] || package=
  name=posenc-site-$(version_of_tree)
  folder=$(mktemp -d)
  "$1" explore --export "$folder/site" --quiet &&
    python3 -B "$root/packaging/site/reference.py" "$folder/site/reference" ${package:+"$package"} && archive "$folder/site" "$name" "$2/$name.tar.gz" || status=$?
  rm -rf "$folder"
  ((status == 0)) && echo "$2/$name.tar.gz"
}
