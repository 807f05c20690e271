#!/usr/bin/python3
"""What classes.py makes of classes that are written in less usual ways."""
import sys
import unittest

sys.dont_write_bytecode = True
from classes import classes_in


def size(body):
    return classes_in(f"struct X {{ {body} }};")["X"]


class Classes(unittest.TestCase):
    def test_counts_methods(self):
        for body, methods in {
            "X(); ~X(); explicit X(int a);": 3,
            "X(int a) : a_(a), b_{a, {1}}, c_<int>{} { if (a) { f(); } } void f();": 2,
            "template <class... T> X(T... t) : T(t)..., a_{1} {} void f();": 2,
            "X() noexcept(noexcept(f(1))) : a_(1) {} int g() const;": 2,
            "X() = default; X(const X&) = delete; X& operator=(X&&) noexcept = default;": 0,
            "virtual void f() = 0; void g() override {} static int h(int a = 3, X x = {});": 3,
            "int operator()(int a); bool operator<(X x) const; X& operator<<(int); int operator[](int i) { return i; }":
                4,
            "operator bool() const; auto operator<=>(const X&) const = default;": 1,
            "void f(int); void f(long); [[nodiscard]] int g();": 3,
            "auto f() -> std::vector<int>; decltype(auto) g(int a) { return a; }": 2,
            "template <class T> requires (sizeof(T) > 4) void f(T t);"
            "template <class T> requires requires(T t) { t.f(); } void g(T t) {}": 2,
            "std::function<void(int)> f(std::function<int()> g = [] { return 3; });": 1,
            "// void f();\n/* void g(); */\n#define F void h();\nvoid i();": 1,
            "const char* f() { return \"}; void g();\"; } char g() { return '{'; }": 2,
            "int sum(int a) { struct Y { int b; void c(); }; return a << 3 >> 1; } void f();": 2,
        }.items():
            self.assertEqual(size(body), (methods, 0), body)

    def test_counts_data_members(self):
        for body, members in {
            "int a, *b = nullptr, c[3]; unsigned d : 3, e : 5 = 2;": 5,
            "static int a; static constexpr int kB = 3; inline static std::string c{\"c\"}; const int d = 3;": 1,
            "std::function<void(int)> f; std::array<int, 3> a{1, 2}; std::map<int, std::set<int>> m = {{1, {2}}};": 3,
            "std::function<int()> f = [] { int a = 3; return a; }; int b;": 2,
            "void (*call)(int, int); int (X::*method)(int) = nullptr; int next;": 3,
            "alignas(64) std::atomic<int> a; mutable std::mutex m; [[no_unique_address]] A e; decltype(3) d = 3;": 4,
            "struct stat seen_{}; int d = (3) ? 4 : 5; std::array<int, (3 > 2)> a; std::array<int, sizeof(int)> b;": 4,
            "union { int a; struct { int b, c; }; }; struct { int d; } e, f;": 5,
            "public: using A = int; typedef int B; enum class C { a, b }; enum { d };"
            "friend class E; class F; [[nodiscard]] friend bool g(X x); static_assert(true, \"\");": 0,
            "friend bool operator==(X, X) { return true; } public: int a; private: int b; protected: int c;": 3,
            "struct Y { int a, b; } y; class Z; int c;": 2,
        }.items():
            self.assertEqual(size(body), (0, members), body)

    def test_finds_classes(self):
        self.assertEqual(classes_in("""
            namespace a { template <class T, typename = struct Tag> class Outer final : public Base<T, 3>, private B {
              class Inner; struct alignas(64) Slot { int a; struct Deep { int b, c; }; };
              enum class Kind : int { one };
              struct Pair f();
            };
            template <> struct hash<Outer<int>> { int operator()(int) const; }; }
            template <class T> class Outer<T>::Inner { int a; };
            enum class None { one, two };
            struct Forward; struct Forward variable; struct Forward f(struct Forward argument) { return argument; }
            inline void local() { struct Local { int a; } local; }
            """), {"Outer": (1, 0), "Outer::Slot": (0, 1), "Outer::Slot::Deep": (0, 2), "hash<Outer<int>>": (1, 0),
                   "Outer<T>::Inner": (0, 1), "Local": (0, 1)})


unittest.main()
