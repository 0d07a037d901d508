// C++ as applications write it: std::map, std::vector, std::string, virtual calls, exceptions, allocation.
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench.h"

namespace {

struct Shape {
  virtual ~Shape() = default;
  virtual uint64_t area() const = 0;
};

struct Rectangle : Shape {
  uint64_t width, height;
  Rectangle(uint64_t w, uint64_t h) : width(w), height(h) {}
  uint64_t area() const override { return width * height; }
};

struct Square : Shape {
  uint64_t side;
  explicit Square(uint64_t s) : side(s) {}
  uint64_t area() const override { return side * side; }
};

struct Triangle : Rectangle {
  using Rectangle::Rectangle;
  uint64_t area() const override { return Rectangle::area() / 2; }
};

std::unique_ptr<Shape> make_shape(uint32_t random) {
  uint32_t a = 1 + random % 50, b = 1 + random / 64 % 50;
  switch (random % 3) {
    case 0:
      return std::make_unique<Rectangle>(a, b);
    case 1:
      return std::make_unique<Square>(a);
    default:
      return std::make_unique<Triangle>(a, b);
  }
}

__attribute__((noinline)) uint64_t checked(uint64_t value) {
  if (value % 16 == 0) throw std::out_of_range("multiple of 16: " + std::to_string(value));
  return value;
}

uint64_t one_round(uint32_t* random) {
  uint64_t digest = 1;
  std::map<std::string, uint64_t> words;
  for (int i = 0; i < 600; i++) words["word-" + std::to_string(bench_random(random) % 300)] += i;
  for (const auto& [word, sum] : words) digest = bench_mix(digest, word.size() + sum);

  std::vector<std::unique_ptr<Shape>> shapes;
  for (int i = 0; i < 500; i++) shapes.push_back(make_shape(bench_random(random)));
  uint64_t area = 0;
  for (int pass = 0; pass < 10; pass++)
    for (const auto& shape : shapes) area += shape->area();
  digest = bench_mix(digest, area);

  int caught = 0;
  for (uint64_t i = 1; i <= 320; i++) {
    try {
      digest = bench_mix(digest, checked(i));
    } catch (const std::out_of_range& error) {
      digest = bench_mix(digest, error.what()[16]);
      caught++;
    }
  }
  bench_require(caught == 20, "number of exceptions");
  return digest;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t digest = 1;
  uint32_t random = 88172645u;
  for (long round = bench_size(argc, argv); round > 0; round--) digest = bench_mix(digest, one_round(&random));
  return bench_finish("cxx", digest);
}
