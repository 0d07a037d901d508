// C++: exceptions through frames, containers, streams, long double, floating point of every width.
#include <algorithm>
#include <cmath>
#include <complex>
#include <iomanip>
#include <iostream>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

static int depth(int n) {
  struct Guard {
    ~Guard() { ++count(); }
    static int& count() {
      static int value;
      return value;
    }
  } guard;
  if (n == 0) throw std::runtime_error("from below, " + std::to_string(Guard::count()));
  return depth(n - 1) + 1;
}

int main() {
  for (int i = 0; i < 3; ++i) {
    try {
      depth(10 * i);
    } catch (const std::exception& error) {
      std::cout << error.what() << "\n";
    }
  }
  std::mt19937_64 random(42);
  std::vector<double> values(5000);
  std::normal_distribution<double> normal;
  for (double& value : values) value = normal(random);
  std::sort(values.begin(), values.end());
  std::cout << std::setprecision(17) << values.front() << " " << values.back() << "\n";
  std::map<std::string, int> words;
  for (int i = 0; i < 1000; ++i) ++words["k" + std::to_string(random() % 100)];
  for (auto& [word, count] : words) std::cout << word << "=" << count << " ";
  std::cout << "\n";
  long double sum = 0;
  for (int i = 1; i < 2000; ++i) sum += 1.0L / i / i;
  std::cout << std::setprecision(21) << sum << " " << std::sqrt(2.0L) << " " << std::sin(1.0L) << "\n";
  std::cout << std::setprecision(9) << std::exp(std::complex<float>(1, 2)) << std::pow(2.5f, 3.5f) << " "
            << std::nextafter(1.0f, 2.0f) << " " << std::fma(1.1, 2.2, 3.3) << " " << std::lround(-2.5) << " "
            << std::remainder(5.5, 2.0) << " " << std::log1p(1e-10) << "\n";
  return 0;
}
