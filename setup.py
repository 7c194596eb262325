"""What pyproject.toml can't say: folders of the checkout that are shipped within the package."""

from setuptools import find_packages, setup

#: Where the installed package has them (simulator/shipped.py), and where they are here.
SHIPPED = {
    "simulator.shipped.scenarios": "scenarios",
    "simulator.shipped.scenarios.data": "scenarios/data",
    "simulator.shipped.scenarios.data.continents": "scenarios/data/continents",
    "simulator.shipped.scenarios.data.radon": "scenarios/data/radon",
    "simulator.shipped.scenarios.data.states": "scenarios/data/states",
    "simulator.shipped.docs.examples": "docs/examples",
}
setup(
    packages=[*find_packages(include=["agents*", "simulator*"]), *SHIPPED],
    package_dir=SHIPPED,
    package_data={
        "agents": ["py.typed"],
        "simulator": ["py.typed"],
        "simulator.report": ["static/*"],
        **{k: ["*"] for k in SHIPPED},
    },
)
