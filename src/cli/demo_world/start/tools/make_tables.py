"""Prints tinynn/_tables.py: what the data of the weather station look like."""

CENTERS = {
    "clear": (1350.0, 22.0, 45.0),
    "rain": (-450.0, 14.0, 80.0),
    "storm": (-2100.0, 12.0, 85.0),
}
SPREADS = {
    "clear": (450.0, 5.0, 10.0),
    "rain": (450.0, 4.0, 8.0),
    "storm": (450.0, 4.0, 6.0),
}


def main():
    kinds = list(CENTERS)
    print("# Written by tools/make_tables.py.")
    print(f"KINDS = {kinds}")
    print(f"CENTERS = {[CENTERS[kind] for kind in kinds]}")
    print(f"SPREADS = {[SPREADS[kind] for kind in kinds]}")


if __name__ == "__main__":
    main()
