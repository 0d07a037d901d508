// See recording.h. The file: a header, then four streams, each of numbers of one kind. Numbers are little-endian, as
// on all hosts of these tests.
#include "tests/differential/recording.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace phybin::difftest {
namespace {

constexpr char kMagic[8] = {'P', 'B', 'D', 'I', 'F', 'F', '2', '\n'};
constexpr size_t kWords = RESULT_BYTES / 8;
constexpr uint8_t kNotDone = 255;
static_assert(kWords < kNotDone);

// names and digests; addresses; which words and which of their bytes have changed; those bytes
enum Stream : unsigned { kUnits, kAddresses, kWordIndexes, kByteMasks, kBytes, kStreams };

using Words = std::array<uint64_t, kWords>;

Words words_of(const ResultRecord& record) {
  Words words;
  std::memcpy(words.data(), &record, RESULT_BYTES);
  return words;
}

// What is compared of the result of a case that does nothing.
Words unchanged(const Case& item, const CompareOptions& compare) {
  const CaseRecord& before = item.state;
  ResultRecord result{};
  std::memcpy(result.gpr, before.gpr, sizeof(result.gpr));
  result.flags = before.flags & (kStatusFlags | kDf);
  result.mxcsr = before.mxcsr;
  for (unsigned i = 0; i < 16; i++) {
    std::memcpy(result.vector[i], before.vector[i], before.options & OPTION_YMM ? 32 : 16);
  }
  if (before.options & OPTION_FX) std::memcpy(result.fx, before.fx, sizeof(result.fx));
  for (unsigned i = 0; i < ARENA_BYTES; i += 8) {  // as runner.S has it
    uint64_t word;
    std::memcpy(&word, before.pattern + i % PATTERN_BYTES, 8);
    result.digest = result.digest * 9 + word;
  }
  return words_of(canonical(item, result, compare));
}

class Hash {
 public:
  void add(uint64_t value) {
    value_ = (value_ ^ value) * 0x9e3779b97f4a7c15;
    value_ ^= value_ >> 29;
  }
  void add(const void* data, size_t size) {
    for (size_t i = 0; i < size; i += 8) {
      uint64_t word = 0;
      std::memcpy(&word, static_cast<const uint8_t*>(data) + i, size - i < 8 ? size - i : 8);
      add(word);
    }
  }
  uint32_t value() const { return uint32_t(value_ ^ value_ >> 32); }

 private:
  uint64_t value_ = 0;
};

struct Writer {
  std::string bytes;
  void put(const void* data, size_t size) { bytes.append(static_cast<const char*>(data), size); }
  void u8(unsigned value) { bytes += char(value); }
  void u32(uint64_t value) {
    const auto number = uint32_t(value);
    put(&number, 4);
  }
  void u64(uint64_t value) { put(&value, 8); }
  void text(const std::string& value) {
    u8(unsigned(value.size()));
    bytes += value.substr(0, 255);
  }
};

// Reads zeros behind the end, and remembers that.
struct Reader {
  const uint8_t* at = nullptr;
  size_t left = 0;
  bool failed = false;
  void get(void* data, size_t size) {
    std::memset(data, 0, size);
    failed |= size > left;
    if (failed) return;
    std::memcpy(data, at, size);
    at += size;
    left -= size;
  }
  uint8_t u8() {
    uint8_t value;
    get(&value, 1);
    return value;
  }
  uint32_t u32() {
    uint32_t value;
    get(&value, 4);
    return value;
  }
  uint64_t u64() {
    uint64_t value;
    get(&value, 8);
    return value;
  }
  std::string text() {
    std::string value(u8(), ' ');
    get(value.data(), value.size());
    return value;
  }
};

// The switches in the order of their bits.
template <typename Visit>
void for_each_switch(Recording& recording, Visit visit) {
  StateOptions& state = recording.options.state;
  CompareOptions& compare = recording.compare;
  for (bool* each : {&recording.options.faults, &state.rounding, &state.ftz, &state.precision, &compare.mxcsr_flags,
                     &compare.nan_payload, &compare.x87_status, &compare.fault_progress, &compare.lock_address}) {
    visit(*each);
  }
}

void put_result(const RecordedResult& result, Writer (&streams)[kStreams]) {
  streams[kWordIndexes].u8(result.done ? unsigned(result.words.size()) : kNotDone);
  if (!result.done) return;
  for (const RecordedResult::Word& word : result.words) {
    streams[kWordIndexes].u8(word.index);
    streams[kByteMasks].u8(word.mask);
    for (unsigned i = 0; i < 8; i++) {
      if (word.mask >> i & 1) streams[kBytes].u8(uint8_t(word.value >> (8 * i)));
    }
  }
}

RecordedResult get_result(Reader (&streams)[kStreams]) {
  RecordedResult result;
  const uint8_t count = streams[kWordIndexes].u8();
  result.done = count != kNotDone;
  for (unsigned n = 0; result.done && n < count; n++) {
    RecordedResult::Word word{streams[kWordIndexes].u8(), streams[kByteMasks].u8(), 0};
    for (unsigned i = 0; i < 8; i++) {
      if (word.mask >> i & 1) word.value |= uint64_t(streams[kBytes].u8()) << (8 * i);
    }
    if (word.index >= kWords) streams[kWordIndexes].failed = true;
    result.words.push_back(word);
  }
  return result;
}

std::string read_file(const std::string& path, std::string& bytes) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) return path + ": " + std::strerror(errno);
  char buffer[65536];
  for (size_t got; (got = std::fread(buffer, 1, sizeof(buffer), file)) != 0;) bytes.append(buffer, got);
  std::fclose(file);
  return {};
}

}  // namespace

std::string this_cpu() {
#ifdef __x86_64__
  std::array<unsigned, 12> words{};
  for (unsigned i = 0; i < 3; i++) {
    unsigned* part = words.data() + 4 * i;
    if (!__get_cpuid(0x80000002 + i, part, part + 1, part + 2, part + 3)) return {};
  }
  std::string name(reinterpret_cast<const char*>(words.data()), sizeof(words));
  name.resize(name.find_last_not_of(std::string_view(" \0", 2)) + 1);
  unsigned eax = 0, ebx, ecx, edx;
  __get_cpuid(1, &eax, &ebx, &ecx, &edx);
  const unsigned family = eax >> 8 & 15;
  return name + ", family " + std::to_string(family == 15 ? family + (eax >> 20 & 255) : family) + ", model " +
         std::to_string((eax >> 4 & 15) | (eax >> 16 & 15) << 4) + ", stepping " + std::to_string(eax & 15);
#else
  return {};
#endif
}

bool take_addresses(Unit& unit, const RecordedUnit& recorded) {
  if (recorded.addresses.size() != unit.snippets.size() || recorded.results.size() != unit.cases.size()) return false;
  for (Case& item : unit.cases) item.address = recorded.addresses[size_t(item.snippet - unit.snippets.data())];
  return true;
}

uint32_t digest_of_cases(const Unit& unit) {
  Hash hash;
  const Snippet* last = nullptr;
  for (const Case& item : unit.cases) {
    if (item.snippet != last) {
      const std::vector<uint8_t> code = place(item.snippet->code, item.address);
      hash.add(item.address);
      hash.add(code.data(), code.size());
      last = item.snippet;
    }
    hash.add(&item.state, sizeof(item.state));
    hash.add(digest_of_comparison(item));
  }
  return hash.value();
}

RecordedUnit record_unit(const Unit& unit, const std::vector<Outcome>& outcomes, const CompareOptions& compare) {
  RecordedUnit recorded;
  recorded.name = unit.name;
  recorded.digest = digest_of_cases(unit);
  for (size_t i = 0; i < unit.cases.size(); i++) {
    const Case& item = unit.cases[i];
    if (i == 0 || item.snippet != unit.cases[i - 1].snippet) recorded.addresses.push_back(uint32_t(item.address));
    RecordedResult& result = recorded.results.emplace_back();
    result.done = outcomes[i].kind == Outcome::kDone;
    if (!result.done) continue;
    const Words before = unchanged(item, compare), after = words_of(canonical(item, outcomes[i].result, compare));
    for (size_t word = 0; word < kWords; word++) {
      uint8_t mask = 0;
      for (unsigned byte = 0; byte < 8; byte++) {
        if ((before[word] ^ after[word]) >> (8 * byte) & 255) mask = uint8_t(mask | 1 << byte);
      }
      if (mask) result.words.push_back({uint8_t(word), mask, after[word]});
    }
  }
  return recorded;
}

Outcome recorded_outcome(const Case& item, const RecordedResult& recorded, const CompareOptions& compare) {
  Outcome outcome;
  if (!recorded.done) {
    outcome.kind = Outcome::kDied;
    return outcome;
  }
  Words words = unchanged(item, compare);
  for (const RecordedResult::Word& word : recorded.words) {
    for (unsigned byte = 0; byte < 8; byte++) {
      const uint64_t bits = uint64_t(255) << (8 * byte);
      if (word.mask >> byte & 1) words[word.index] = (words[word.index] & ~bits) | (word.value & bits);
    }
  }
  std::memcpy(&outcome.result, words.data(), RESULT_BYTES);
  return outcome;
}

std::string write_recording(const std::string& path, const Recording& recording) {
  Recording copy = recording;
  Writer file, streams[kStreams];
  file.put(kMagic, sizeof(kMagic));
  file.text(copy.cpu);
  file.u64(copy.options.seed);
  file.u32(copy.options.count);
  file.u32(copy.options.sequence_states);
  file.u32(copy.sequences);
  for_each_switch(copy, [&](bool& value) { file.u8(value); });
  file.u32(copy.units.size());
  for (const RecordedUnit& unit : copy.units) {
    streams[kUnits].text(unit.name);
    streams[kUnits].u32(unit.digest);
    streams[kUnits].u8(unsigned(unit.addresses.size()));
    streams[kUnits].u32(unit.results.size());
    for (uint32_t address : unit.addresses) streams[kAddresses].u32(address);
    for (const RecordedResult& result : unit.results) put_result(result, streams);
  }
  for (const Writer& stream : streams) file.u32(stream.bytes.size());
  for (const Writer& stream : streams) file.bytes += stream.bytes;
  std::FILE* out = std::fopen(path.c_str(), "wb");
  const bool written = out && std::fwrite(file.bytes.data(), file.bytes.size(), 1, out) == 1;
  if ((out && std::fclose(out) != 0) || !written) return path + ": " + std::strerror(errno);
  return {};
}

std::string read_recording(const std::string& path, Recording& recording) {
  std::string bytes;
  if (std::string problem = read_file(path, bytes); !problem.empty()) return problem;
  Reader file{reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
  char magic[sizeof(kMagic)];
  file.get(magic, sizeof(magic));
  if (std::memcmp(magic, kMagic, sizeof(kMagic)) != 0) return path + ": not a recording, or one of another format";
  recording.cpu = file.text();
  recording.options.seed = file.u64();
  recording.options.count = file.u32();
  recording.options.sequence_states = file.u32();
  recording.sequences = file.u32();
  for_each_switch(recording, [&](bool& value) { value = file.u8() != 0; });
  const uint32_t units = file.u32();
  uint32_t sizes[kStreams];
  for (uint32_t& size : sizes) size = file.u32();
  Reader streams[kStreams];
  for (unsigned i = 0; i < kStreams; i++) {
    if (file.failed || sizes[i] > file.left) return path + ": damaged";
    streams[i] = {file.at, sizes[i]};
    file.at += sizes[i];
    file.left -= sizes[i];
  }
  const auto damaged = [&] {
    for (const Reader& stream : streams) {
      if (stream.failed) return true;
    }
    return false;
  };
  for (uint32_t n = 0; n < units; n++) {
    RecordedUnit& unit = recording.units.emplace_back();
    unit.name = streams[kUnits].text();
    unit.digest = streams[kUnits].u32();
    unit.addresses.resize(streams[kUnits].u8());
    const uint32_t results = streams[kUnits].u32();
    for (uint32_t& address : unit.addresses) address = streams[kAddresses].u32();
    for (uint32_t i = 0; i < results && !damaged(); i++) unit.results.push_back(get_result(streams));
    if (damaged()) return path + ": damaged";
  }
  return {};
}

}  // namespace phybin::difftest
