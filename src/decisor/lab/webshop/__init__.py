"""WebShop (Yao et al., NeurIPS 2022): products, goals, search and pages of a shop in text mode."""
