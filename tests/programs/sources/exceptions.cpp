// C++ that is quick to compile: exceptions, virtual functions, templates.
#include <cstdio>
#include <stdexcept>
#include <vector>

struct Shape {
  virtual ~Shape() = default;
  virtual double area() const = 0;
};
template <int N>
struct Square : Shape {
  double area() const override {
    if (N == 3) throw std::runtime_error("no area");
    return N * N;
  }
};

int main() {
  std::vector<Shape*> shapes{new Square<2>, new Square<3>, new Square<4>};
  for (Shape* shape : shapes) {
    try {
      std::printf("%g\n", shape->area());
    } catch (const std::exception& error) {
      std::printf("%s\n", error.what());
    }
    delete shape;
  }
  return 8;
}
