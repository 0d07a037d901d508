// See key.h. phybinctl key generate.
#include "client/key.h"

#include <fcntl.h>
#include <nettle/eddsa.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "client/commands.h"
#include "client/connection.h"
#include "client/digest.h"
#include "client/format.h"

namespace phybin::client {
namespace {

constexpr std::string_view kSecretWord = "phybin-ed25519-secret ", kPublicWord = "phybin-ed25519 ";
static_assert(ED25519_KEY_SIZE == sizeof(KeyBytes) && ED25519_SIGNATURE_SIZE == sizeof(SignatureBytes));

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// A new file that nobody had before: a key must not be overwritten. Returns "" or what went wrong.
std::string write_new_file(const std::string& name, const std::string& text, mode_t mode) {
  Descriptor file(open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file) return name + ": " + strerror(errno);
  errno = ENOSPC;  // if only a part of it is written
  const ssize_t written = write(file.get(), text.data(), text.size());
  if (written != static_cast<ssize_t>(text.size()) || fsync(file.get()) != 0) {
    std::string error = name + ": " + strerror(errno);
    unlink(name.c_str());
    return error;
  }
  return {};
}

}  // namespace

std::string to_hex(const uint8_t* bytes, size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

bool read_secret_key(const std::string& name, KeyPair& key, std::string& error) {
  Descriptor file(open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status;
  if (!file || fstat(file.get(), &status) != 0) {
    error = name + ": " + strerror(errno);
    return false;
  }
  if ((status.st_mode & 077) != 0) {
    error = name + ": others may read this secret key; chmod 600";
    return false;
  }
  char buffer[256];
  const ssize_t count = read(file.get(), buffer, sizeof buffer);
  std::string_view text(buffer, static_cast<size_t>(std::max<ssize_t>(count, 0)));
  bool good = text.substr(0, kSecretWord.size()) == kSecretWord;
  if (good) {
    text.remove_prefix(kSecretWord.size());
    good = text.size() >= 64 && (text.size() == 64 || text[64] == '\n');
  }
  for (size_t i = 0; good && i < sizeof(KeyBytes); ++i) {
    const int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
    good = high >= 0 && low >= 0;
    key.secret[i] = static_cast<uint8_t>(high * 16 + low);
  }
  explicit_bzero(buffer, sizeof buffer);
  if (!good) {
    error = name + ": not a secret key of `phybinctl key generate`";
    return false;
  }
  ed25519_sha512_public_key(key.open.data(), key.secret.data());
  return true;
}

SignatureBytes sign(const KeyPair& key, std::string_view text) {
  SignatureBytes signature;
  ed25519_sha512_sign(key.open.data(), key.secret.data(), text.size(), reinterpret_cast<const uint8_t*>(text.data()),
                      signature.data());
  return signature;
}

int run_key_generate(const Arguments& arguments) {
  const std::string& name = arguments.operands[0];
  KeyPair key;
  if (getrandom(key.secret.data(), key.secret.size(), 0) != static_cast<ssize_t>(key.secret.size())) {
    return failure(std::string("no random numbers: ") + strerror(errno));
  }
  ed25519_sha512_public_key(key.open.data(), key.secret.data());
  const std::string open = to_hex(key.open.data(), key.open.size());
  const std::string base = name.substr(name.rfind('/') + 1);
  std::string error =
      write_new_file(name, std::string(kSecretWord) + to_hex(key.secret.data(), key.secret.size()) + "\n", 0600);
  if (error.empty()) {
    error = write_new_file(name + ".pub", std::string(kPublicWord) + open + " " + printable(base) + "\n", 0644);
    if (!error.empty()) unlink(name.c_str());
  }
  explicit_bzero(key.secret.data(), key.secret.size());
  if (!error.empty()) return failure(error);
  if (arguments.has("--json")) {
    print_json({{"secret_key", name}, {"public_key", name + ".pub"}, {"public_key_hex", open}});
  } else {
    print("secret key: " + name + "\npublic key: " + name +
          ".pub (to /etc/phybin/keys of the machines that are to accept its archives)\n");
  }
  return kSuccess;
}

}  // namespace phybin::client
