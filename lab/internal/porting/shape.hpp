#include <atomic>
#include <memory>
#include <stdexcept>

// A Shape is an object that C++ shares.
class Shape {
public:
	// make throws std::invalid_argument if there are fewer than three sides.
	static std::shared_ptr<Shape> make(int sides) { return std::make_shared<Shape>(sides); }

	explicit Shape(int n) : number(n) {
		if (n < 3) {
			throw std::invalid_argument("a shape has three sides or more");
		}
		alive()++;
	}
	Shape(const Shape &) = delete;
	~Shape() { alive()--; }

	int sides() const { return number; }

	// alive is the number of shapes.
	static std::atomic<int> &alive() {
		static std::atomic<int> n;
		return n;
	}

private:
	int number;
};
