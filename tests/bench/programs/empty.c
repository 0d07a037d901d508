// Nothing at all: what starting a dynamic program costs.
int main(void) { return 0; }
