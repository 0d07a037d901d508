# Writes OUTPUT, a C++ header with the digest of the files listed in FILES (paths from ROOT, one a line): whoever makes
# code for others from the same files makes the same code, on every machine.
file(STRINGS ${FILES} names)
list(SORT names)
set(text "")
foreach(name IN LISTS names)
  file(SHA256 ${ROOT}/${name} digest)
  string(APPEND text "${digest} ${name}\n")
endforeach()
string(SHA256 digest "${text}")
string(REGEX REPLACE "(..)" "0x\\1," bytes "${digest}")
file(WRITE ${OUTPUT} "#define PHYBIN_TRANSLATOR_BUILD {${bytes}}\n")
